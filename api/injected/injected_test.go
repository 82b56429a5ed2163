// SPDX-License-Identifier: Apache-2.0

package injected

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAPodIsForWindowsIfNoOtherNodeMayHaveIt(t *testing.T) {
	system := func(operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "zone", Operator: corev1.NodeSelectorOpExists},
			{Key: corev1.LabelOSStable, Operator: operator, Values: values},
		}}
	}
	windows := system(corev1.NodeSelectorOpIn, "windows")
	required := func(terms ...corev1.NodeSelectorTerm) corev1.PodSpec {
		return corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}}
	}
	for sentence, test := range map[string]struct {
		spec corev1.PodSpec
		want bool
	}{
		"a pod that says nothing":           {corev1.PodSpec{}, false},
		"by its operating system":           {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}}, true},
		"by its node selector":              {corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelOSStable: "windows"}}, true},
		"for Linux":                         {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Linux}, NodeSelector: map[string]string{corev1.LabelOSStable: "linux"}}, false},
		"by its node affinity":              {required(windows), true},
		"by each term of its node affinity": {required(windows, windows), true},
		"by one of two terms":               {required(windows, system(corev1.NodeSelectorOpExists)), false},
		"by a term that allows Linux, too":  {required(system(corev1.NodeSelectorOpIn, "windows", "linux")), false},
		"by a term that excludes Windows":   {required(system(corev1.NodeSelectorOpNotIn, "windows")), false},
		"by a node affinity without terms":  {required(), false},
		"by an affinity to pods":            {corev1.PodSpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}}, false},
		"by a node affinity that is not required": {corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: windows}},
		}}}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if found := IsForWindows(&corev1.Pod{Spec: test.spec}); found != test.want {
				t.Errorf("found %t, expected %t", found, test.want)
			}
		})
	}
}
