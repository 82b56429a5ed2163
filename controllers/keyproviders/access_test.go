// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

func TestAPolicyIsReadyIfAllServicesUseItAsItIs(t *testing.T) {
	use := &providerreport.Provider{Generation: 2}
	wrong := &providerreport.Provider{Generation: 2, Problem: providerreport.Invalid, Detail: "spec.allow[0].when is wrong"}
	held := &providerreport.Provider{Generation: 2, Problem: providerreport.HeldBack, Detail: "the KeyAccessPolicy b is wrong"}
	for name, c := range map[string]struct {
		views                 []*providerreport.Provider
		accepted, ready, text string
	}{
		"all use it":               {[]*providerreport.Provider{use, use}, "True Understood", "True InUse", "All key access services use it."},
		"nobody answers":           {nil, "Unknown NoService", "Unknown NoService", "kubectl get pods -n keys -l app.kubernetes.io/component=key-access"},
		"one does not know it":     {[]*providerreport.Provider{use, nil}, "Unknown NotRead", "Unknown NotRead", "has not read generation 2"},
		"one has the last version": {[]*providerreport.Provider{use, {Generation: 1}}, "Unknown NotRead", "Unknown NotRead", "has not read generation 2"},
		"one holds it back":        {[]*providerreport.Provider{use, held}, "True Understood", "False HeldBack", "the KeyAccessPolicy b is wrong"},
		"one cannot use it":        {[]*providerreport.Provider{held, wrong, nil}, "False Invalid", "False Invalid", "spec.allow[0].when is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			var status v1alpha1.KeyAccessStatus
			fillAccess(&status, 2, c.views, "keys")
			for condition, want := range map[string]string{v1alpha1.ConditionAccepted: c.accepted, v1alpha1.ConditionReady: c.ready} {
				found := meta.FindStatusCondition(status.Conditions, condition)
				if found == nil || string(found.Status)+" "+found.Reason != want || found.ObservedGeneration != 2 {
					t.Errorf("found %+v, expected %s %s", found, condition, want)
				}
				if condition == v1alpha1.ConditionReady && !strings.Contains(found.Message, c.text) {
					t.Errorf("found %q, expected %q", found.Message, c.text)
				}
			}
			if int(status.Services) != len(c.views) || status.ObservedGeneration != 2 {
				t.Errorf("found %+v", status)
			}
		})
	}
}
