// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// A role that others aggregate can be changed by everybody who administers a namespace.
func TestNobodyMayWeakenAProfileWithoutBeingBoundToTheRoleForIt(t *testing.T) {
	const role = release + "-weaken"
	objects := renderChart(t, "--set", "rbac.aggregateWriteToEdit=true")
	aggregated := 0
	for _, object := range objects {
		switch object.GetKind() {
		case "ClusterRole":
			may := slices.ContainsFunc(find[rbacv1.ClusterRole](t, objects, "ClusterRole", object.GetName()).Rules, func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.Verbs, "weaken") || slices.Contains(r.Verbs, rbacv1.VerbAll)
			})
			if may != (object.GetName() == role) {
				t.Errorf("that the role %s has the verb weaken is %t", object.GetName(), may)
			}
			for label := range object.GetLabels() {
				if strings.Contains(label, "aggregate-to") {
					aggregated++
					if object.GetName() == role {
						t.Errorf("%s is aggregated by %s", role, label)
					}
				}
			}
		case "ClusterRoleBinding", "RoleBinding":
			if bound := find[rbacv1.RoleBinding](t, objects, object.GetKind(), object.GetName()).RoleRef.Name; bound == role {
				t.Errorf("%s %s binds %s", object.GetKind(), object.GetName(), role)
			}
		}
	}
	if aggregated != 3 {
		t.Errorf("found %d labels that aggregate roles, expected one to view, one to edit and one to admin", aggregated)
	}
}
