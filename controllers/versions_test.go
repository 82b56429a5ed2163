// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestACacheThatIsOlderThanTheLastWriteIsRecognised(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "orders"}
	v := newVersions()
	if v.pending(name, "1") || v.pending(name, "") {
		t.Error("without a write there is nothing to wait for")
	}
	v.wrote(name, "10")
	for _, found := range []string{"", "9", "9", "1"} {
		if !v.pending(name, found) {
			t.Errorf("version %q is older than 10", found)
		}
	}
	if v.pending(name, "10") {
		t.Error("version 10 is the write itself")
	}
	if v.pending(name, "9") {
		t.Error("what was seen once is not waited for again")
	}
	v.wrote(name, "10")
	if v.pending(name, "100") {
		t.Error("version 100 is newer than 10")
	}
	v.wrote(name, "10")
	v.forget(name)
	if v.pending(name, "") {
		t.Error("what was forgotten is not waited for")
	}
}
