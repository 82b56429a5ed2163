// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var update = flag.Bool("update", false, "write golden files and the chart's README instead of comparing with them")

// Each additional right is a decision, so the golden file has to be changed on purpose.
func TestRightsAreExactlyThese(t *testing.T) {
	for name, arguments := range map[string][]string{
		"rights":                 nil,
		"rights-of-another-name": {"--namespace", "elsewhere", "--set", "fullnameOverride=broker,rbac.aggregateWriteToEdit=true"},
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, filepath.Join("testdata", name+".golden"), rights(t, renderChart(t, arguments...)))
		})
	}
}

// rights lists who may do what, one right on each line.
func rights(t *testing.T, objects []*unstructured.Unstructured) string {
	var lines []string
	for _, object := range objects {
		where := "in the cluster"
		if namespace := object.GetNamespace(); namespace != "" {
			where = "in " + namespace
		}
		var rules []rbacv1.PolicyRule
		switch object.GetKind() {
		case "ClusterRole":
			rules = find[rbacv1.ClusterRole](t, objects, "ClusterRole", object.GetName()).Rules
		case "Role":
			rules = find[rbacv1.Role](t, objects, "Role", object.GetName()).Rules
		case "ClusterRoleBinding", "RoleBinding":
			binding := find[rbacv1.RoleBinding](t, objects, object.GetKind(), object.GetName())
			for _, subject := range binding.Subjects {
				lines = append(lines, fmt.Sprintf("%s %s/%s is bound to %s %s %s",
					subject.Kind, subject.Namespace, subject.Name, binding.RoleRef.Kind, binding.RoleRef.Name, where))
			}
			continue
		default:
			continue
		}
		for _, rule := range rules {
			slices.Sort(rule.Verbs)
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					line := fmt.Sprintf("%s %s %s: %s %s", object.GetKind(), object.GetName(), where, strings.Join(rule.Verbs, " "), resource)
					if group != "" {
						line += "." + group
					}
					if len(rule.ResourceNames) > 0 {
						line += " named " + strings.Join(rule.ResourceNames, " ")
					}
					lines = append(lines, line)
				}
			}
			if len(rule.NonResourceURLs) > 0 {
				lines = append(lines, fmt.Sprintf("%s %s %s: %v %v", object.GetKind(), object.GetName(), where, rule.Verbs, rule.NonResourceURLs))
			}
		}
	}
	slices.SortFunc(lines, cmp.Compare[string])
	return strings.Join(lines, "\n") + "\n"
}

// golden compares with a file, or writes it.
func golden(t *testing.T, path, found string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(found), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), found); diff != "" {
		t.Errorf("found (+) other than %s (-); if that is meant, run go test ./test/chart -update:\n%s", path, diff)
	}
}
