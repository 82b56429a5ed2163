// SPDX-License-Identifier: Apache-2.0

package providersource

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

func TestTheReportSaysWhatIsWrongWithoutNames(t *testing.T) {
	spec := func(kind string) *v1alpha1.KeyProviderSpec {
		return &v1alpha1.KeyProviderSpec{Type: kind, Endpoints: []v1alpha1.KeyEndpoint{"hsm-1.example:5696"}}
	}
	for sentence, test := range map[string]struct {
		spec          *v1alpha1.KeyProviderSpec
		problem, says string
	}{
		"credentials that cannot be used": {spec(providers.KMIP), providerreport.InvalidCredentials, "tls.crt is wrong"},
		"a type that is not linked":       {spec(providers.OpenBao), providerreport.Invalid, "Type is openbao, which this program does not have"},
		"a configuration that is wrong":   {&v1alpha1.KeyProviderSpec{Type: providers.KMIP}, providerreport.Invalid, "Endpoints is empty"},
		"a duration that is none":         {&v1alpha1.KeyProviderSpec{Type: providers.KMIP, CacheTime: "long"}, providerreport.Invalid, "expected a duration"},
	} {
		open := func(*providers.Config, providers.Credentials) (providers.Provider, error) {
			return nil, providers.BadCredentials(errors.New("tls.crt is wrong"))
		}
		s := New(Options{Types: providers.Types{providers.KMIP: open}, Logger: slog.New(slog.DiscardHandler)})
		key := types.NamespacedName{Namespace: "shop", Name: "hsm"}
		s.entries[key] = newEntry(s, key)
		if found := s.Report().Providers; len(found) != 0 {
			t.Errorf("%s: a provider that was not read yet is reported: %+v", sentence, found)
		}
		s.entries[key].update(t.Context(), version{"a-uid", 4}, test.spec)
		found := s.Report().Providers[0]
		if found.UID != "a-uid" || found.Generation != 4 || found.Problem != test.problem || !strings.Contains(found.Detail, test.says) || strings.Contains(found.Detail, "hsm") {
			t.Errorf("%s: found %+v", sentence, found)
		}
		s.entries[key].update(t.Context(), version{"a-uid", 6}, test.spec)
		if found := s.Report().Providers[0]; found.Generation != 6 {
			t.Errorf("%s: the generation is %d after changes that ended as before, expected 6", sentence, found.Generation)
		}
	}
}
