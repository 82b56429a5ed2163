// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func TestEveryWorkloadPassesPodSecurityRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for name, arguments := range map[string][]string{
		"with default values":         nil,
		"with everything switched on": everySwitchOn(),
	} {
		t.Run(name, func(t *testing.T) {
			workloads := 0
			objects := renderChart(t, arguments...)
			for _, object := range objects {
				switch object.GetKind() {
				case "Deployment":
				case "Pod", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "CronJob":
					t.Fatalf("found %s, expected Deployments only, which this test knows to check", identity(object))
				default:
					continue
				}
				workloads++
				template := find[appsv1.Deployment](t, objects, "Deployment", object.GetName()).Spec.Template
				if result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec)); !result.Allowed {
					t.Errorf("%s: %s", identity(object), result.ForbiddenDetail())
				}
			}
			if workloads == 0 {
				t.Error("found no workload to check")
			}
		})
	}
}
