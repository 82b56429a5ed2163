// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/effective"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// profileKinds are the names by which kubectl knows the kinds of profiles.
var profileKinds = map[string]string{
	"cryptoprofile": downgrade.KindNamespaced, "cryptoprofiles": downgrade.KindNamespaced, "cprof": downgrade.KindNamespaced,
	"clustercryptoprofile": downgrade.KindCluster, "clustercryptoprofiles": downgrade.KindCluster, "ccprof": downgrade.KindCluster,
}

// profileName names an object that describes a profile.
type profileName struct{ kind, name string }

// parseProfile reads KIND/NAME.
func parseProfile(argument string) (profileName, error) {
	kind, name, _ := strings.Cut(argument, "/")
	known := profileKinds[strings.ToLower(kind)]
	if known == "" || name == "" || len(content.IsPathSegmentName(name)) > 0 {
		return profileName{}, program.Usagef("found %q, expected a profile such as cprof/NAME or ccprof/NAME", argument)
	}
	return profileName{known, name}, nil
}

// String returns the object as kubectl names it.
func (p profileName) String() string {
	if p.kind == downgrade.KindCluster {
		return "ccprof/" + p.name
	}
	return "cprof/" + p.name
}

func newDiff(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff [KIND/NAME]",
		Short: "Show how profiles that are withheld are weaker than what is served",
		Long: `Shows which profiles the guard withholds because they are weaker than what their namespace serves, and in what they are
weaker: field by field, in the words of the guard. Without a name it shows all of the namespace, or of all namespaces.

It compares with the code of the operator: the plugin has to be of the operator's version.

The exit code is 1 if a profile is withheld, else 0.`,
		Example: `  ` + name + ` diff -n shop
  ` + name + ` diff cprof/payments -n shop
  ` + name + ` diff ccprof/baseline -A -o json`,
		Args: oneProfile,
	}
	cluster.flags(cmd, true)
	cmd.ValidArgsFunction = cluster.complete(profileNames)
	output := outputFlag(cmd, "table", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := output.check(); err != nil {
			return err
		}
		var object profileName
		if len(args) > 0 {
			var err error
			if object, err = parseProfile(args[0]); err != nil {
				return err
			}
		}
		client, namespace, err := cluster.connect()
		if err != nil {
			return err
		}
		changes, err := withheldChanges(cmd.Context(), client, namespace, object)
		if err != nil {
			return err
		}
		if done, err := output.forPrograms(cmd.OutOrStdout(), map[string]any{"withheld": forPrograms(changes)}); done && err != nil {
			return err
		} else if !done {
			writeChanges(cmd.OutOrStdout(), changes)
		}
		if len(changes) > 0 {
			return errFound
		}
		return nil
	}
	return cmd
}

func oneProfile(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return program.Usagef("found %s, expected one profile such as cprof/NAME", text.Count(len(args), "argument"))
	}
	return nil
}

// withheldChanges returns the withheld changes in a namespace, or in all namespaces if namespace
// is empty. If an object is given, it returns only the changes by that object.
func withheldChanges(ctx context.Context, client kubernetes.Interface, namespace string, object profileName) (changes []effective.Change, err error) {
	var sets []*effective.Set
	if namespace == "" {
		sets, err = effective.ReadAll(ctx, client)
	} else {
		var one *effective.Set
		one, err = effective.Read(ctx, client, namespace)
		sets = []*effective.Set{one}
	}
	if err != nil {
		return nil, err
	}
	changes = effective.Changes(sets)
	if object == (profileName{}) {
		return changes, nil
	}
	if namespace == "" && !effective.Has(sets, object.kind, object.name) {
		// It may be for namespaces without a set, where nothing can be withheld.
		all := &effective.Set{}
		if all.Namespaced, err = effective.NamespacedProfiles(ctx, client, ""); err != nil {
			return nil, err
		}
		if all.Cluster, err = effective.ClusterProfiles(ctx, client); err != nil {
			return nil, err
		}
		sets = append(sets, all)
	}
	if !effective.Has(sets, object.kind, object.name) {
		return nil, fmt.Errorf("there is no %s %q in %s", object.kind, object.name, cmp.Or(namespacePhrase(namespace), "any namespace"))
	}
	return slices.DeleteFunc(changes, func(c effective.Change) bool {
		return c.Source.Kind != object.kind || c.Source.Name != object.name
	}), nil
}

func namespacePhrase(namespace string) string {
	if namespace == "" {
		return ""
	}
	return "namespace " + namespace
}

// withheldChange is a change in the output for programs.
type withheldChange struct {
	Kind       string   `json:"kind"`
	Name       string   `json:"name"`
	Namespaces []string `json:"namespaces"`
	Profile    string   `json:"profile"`
	// Serves reports whether an older profile is still served under the name.
	Serves bool `json:"serves"`
	// Digest is the value that the annotation cryptobroker.io/allow-weaker has to contain.
	Digest string          `json:"digest"`
	Weaker []weakeningText `json:"weaker"`
}

// weakeningText describes one field that becomes weaker.
type weakeningText struct {
	Field    string `json:"field"`
	Served   string `json:"served,omitempty"`
	Wanted   string `json:"wanted,omitempty"`
	Sentence string `json:"sentence"`
}

func forPrograms(changes []effective.Change) []withheldChange {
	all := []withheldChange{}
	for _, c := range changes {
		w := withheldChange{Kind: c.Source.Kind, Name: c.Source.Name, Namespaces: c.Namespaces, Profile: c.Profile, Serves: c.Served, Digest: c.Digest}
		for _, weaker := range c.Weakenings {
			w.Weaker = append(w.Weaker, weakeningText{render.FieldPath(weaker.Field), weaker.Old, weaker.New, weaker.Sentence})
		}
		all = append(all, w)
	}
	return all
}

// writeChanges prints changes for people.
func writeChanges(w io.Writer, changes []effective.Change) {
	if len(changes) == 0 {
		fmt.Fprintln(w, "Nothing is withheld.")
		return
	}
	for i, c := range changes {
		if i > 0 {
			fmt.Fprintln(w)
		}
		where := "namespace " + c.Namespaces[0]
		if n := len(c.Namespaces); n > 1 {
			where = fmt.Sprintf("%d namespaces (%s)", n, strings.Join(c.Namespaces, ", "))
		}
		fmt.Fprintf(w, "%s: the profile %q is withheld in %s: %s.\n", c.Source, c.Profile, where, effective.Withheld(c.Change))
		for _, weaker := range c.Weakenings {
			fmt.Fprintf(w, "  %s\n", weaker)
		}
		if c.Unknown { // there is nothing to compare with: this is what is allowed
			if text, err := profile.Marshal(&profile.Document{Profiles: []profile.Profile{c.Wanted}}); err == nil {
				fmt.Fprintf(w, "  The object asks for:\n    %s\n", strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    "))
			}
		}
		fmt.Fprintf(w, "To allow exactly this, somebody with the verb %q on it runs: %s allow %s %s\n",
			downgrade.Verb, name, profileName{c.Source.Kind, c.Source.Name}, namespaceFlag(c.Namespaces))
	}
}

// namespaceFlag returns the flag of the commands for these namespaces.
func namespaceFlag(namespaces []string) string {
	if len(namespaces) > 1 {
		return "-A"
	}
	return "-n " + namespaces[0]
}
