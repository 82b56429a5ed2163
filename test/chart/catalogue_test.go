// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crypto-broker/crypto-broker-operator/controllers/catalogue"
)

func TestTheCatalogueBringsTheRightToWriteItAndNoOther(t *testing.T) {
	without := strings.Split(rights(t, renderChart(t)), "\n")
	var more []string
	for line := range strings.SplitSeq(rights(t, renderChart(t, "--set", "catalogue.enabled=true")), "\n") {
		if !slices.Contains(without, line) {
			more = append(more, line)
		}
	}
	role := release + "-catalogue"
	want := []string{
		"ClusterRole " + role + " in the cluster: create patch clustercryptoprofiles.cryptobroker.io named " + strings.Join(catalogue.Names(), " "),
		"ServiceAccount " + releaseNamespace + "/" + release + " is bound to ClusterRole " + role + " in the cluster",
	}
	if !slices.Equal(more, want) {
		t.Errorf("found %q, expected %q", more, want)
	}
}

func TestTheCatalogueIsWhatTheValuesSay(t *testing.T) {
	tests := map[string]struct {
		arguments []string
		names     []string // of the role; nil for no role
		flags     []string
	}{
		"off": {},
		"all of it": {
			[]string{"--set", "catalogue.enabled=true"}, catalogue.Names(), []string{"--catalogue=all"},
		},
		"some, in some namespaces": {
			[]string{"--set", "catalogue.enabled=true,catalogue.profiles={default,ksa-moderate-2020}", "--set-string", `catalogue.namespaces=team in (a\,b)`},
			[]string{"default", "ksa-moderate-2020"},
			[]string{"--catalogue=default,ksa-moderate-2020", "--catalogue-namespaces=team in (a,b)"},
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			objects := renderChart(t, test.arguments...)
			var flags []string
			for _, argument := range find[appsv1.Deployment](t, objects, "Deployment", release).Spec.Template.Spec.Containers[0].Args {
				if strings.HasPrefix(argument, "--catalogue") {
					flags = append(flags, argument)
				}
			}
			if !slices.Equal(flags, test.flags) {
				t.Errorf("found the flags %q, expected %q", flags, test.flags)
			}
			has := slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetName() == release+"-catalogue" })
			if has != (test.names != nil) {
				t.Fatalf("the role is there: %t", has)
			}
			if !has {
				return
			}
			if found := find[rbacv1.ClusterRole](t, objects, "ClusterRole", release+"-catalogue").Rules[0].ResourceNames; !slices.Equal(found, test.names) {
				t.Errorf("found a right to %q, expected %q", found, test.names)
			}
		})
	}
}
