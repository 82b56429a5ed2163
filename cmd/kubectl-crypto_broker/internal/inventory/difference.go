// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/uses"
)

// Difference is the difference between an inventory and an earlier one.
type Difference struct {
	Version int       `json:"version"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	// New are the uses that only the later inventory has.
	New []Use `json:"new"`
	// Gone are the uses that only the earlier inventory has. Brokers that began to count after
	// the earlier inventory may not have had such a call yet.
	Gone []Use `json:"gone"`
	// NotKnown are uses that only the earlier inventory has, of workloads some of whose brokers were
	// not asked for the later one.
	NotKnown []Use `json:"notKnown"`
	uses.Summary
}

// Read reads the JSON of an inventory.
func Read(r io.Reader) (*Inventory, error) {
	var found Inventory
	switch err := json.NewDecoder(r).Decode(&found); {
	case err != nil:
		return nil, fmt.Errorf("found no JSON of an inventory: %w", err)
	case found.Version != Version || found.Uses == nil:
		return nil, fmt.Errorf("found version %d of an inventory with %d uses, expected version %d, as inventory -o json writes it", found.Version, len(found.Uses), Version)
	}
	return &found, nil
}

// Since returns the difference between the inventory and an earlier one. Both have to cover the
// same namespaces and uses. Otherwise the error says what differs.
func (i *Inventory) Since(earlier *Inventory) (*Difference, error) {
	switch {
	case earlier.Namespace != i.Namespace:
		return nil, fmt.Errorf("the earlier inventory is of %s, expected %s", scope(earlier.Namespace), scope(i.Namespace))
	case !slices.Equal(earlier.Only, i.Only):
		return nil, fmt.Errorf("the earlier inventory was made with --uses %q, expected %q", earlier.Only, i.Only)
	case earlier.UsedSince != nil || i.UsedSince != nil:
		return nil, fmt.Errorf("an inventory was made with --since, expected none: what was not used for a while would count as gone")
	}
	d := &Difference{Version: Version, From: earlier.Made, To: i.Made, New: []Use{}, Gone: []Use{}, NotKnown: []Use{}, Summary: i.Summary}
	before, now := kinds(earlier.Uses), kinds(i.Uses)
	for _, u := range i.Uses {
		if !before[u.kind()] {
			d.New = append(d.New, u)
		}
	}
	type workload struct{ namespace, name string }
	silent := map[workload]bool{}
	for _, u := range i.Unknown {
		silent[workload{u.Namespace, u.Workload}] = true
	}
	for _, u := range earlier.Uses {
		switch {
		case now[u.kind()]:
		case silent[workload{u.Namespace, u.Workload}]:
			d.NotKnown = append(d.NotKnown, u)
		default:
			d.Gone = append(d.Gone, u)
		}
	}
	return d, nil
}

func scope(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return fmt.Sprintf("namespace %q", namespace)
}

// kind identifies a use in different inventories. It does not depend on standards or on the
// version of the plugin.
func (u *Use) kind() string {
	return fmt.Sprintf("%q", []string{u.Namespace, u.Workload, u.Container, u.Profile, u.Operation, u.Algorithm, fmt.Sprint(u.Keys)})
}

func kinds(all []Use) map[string]bool {
	found := make(map[string]bool, len(all))
	for _, u := range all {
		found[u.kind()] = true
	}
	return found
}
