// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/inventory"
)

// readInventory reads the earlier inventory of --diff, nil without the flag.
func readInventory(file string, stdin io.Reader) (*inventory.Inventory, error) {
	if file == "" {
		return nil, nil
	}
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, program.Usagef("--diff: %v", err)
		}
		defer opened.Close()
		stdin = opened
	}
	earlier, err := inventory.Read(stdin)
	if err != nil {
		return nil, program.Usagef("--diff %s: %v", file, err)
	}
	return earlier, nil
}

// writeDifference writes the difference between an inventory and an earlier one.
func (o *output) writeDifference(w io.Writer, found, earlier *inventory.Inventory) error {
	d, err := found.Since(earlier)
	if err != nil {
		return program.Usagef("--diff: %v", err)
	}
	if done, err := o.forPrograms(w, d); done || err != nil {
		return err
	}
	fmt.Fprintf(w, "Since %s.\n\n", stamp(d.From))
	var all []inventory.Use
	var marks []string
	for _, part := range []struct {
		mark string
		uses []inventory.Use
	}{{"new", d.New}, {"gone", d.Gone}, {"not known", d.NotKnown}} {
		for _, u := range part.uses {
			all, marks = append(all, u), append(marks, part.mark)
		}
	}
	if len(all) == 0 {
		fmt.Fprintln(w, "The inventories have the same uses.")
	} else if err := writeUses(w, marks, all); err != nil {
		return err
	}
	writeUnknown(w, d.Unknown)
	return nil
}
