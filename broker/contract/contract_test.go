// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

type policy string

func TestABrokerHasTheReservedNameAndKeepsRunning(t *testing.T) {
	always, never := policy("Always"), policy("Never")
	for sentence, c := range map[string]struct {
		name   string
		policy *policy
		want   bool
	}{
		"a container of the webhook":                  {"crypto-broker", &always, true},
		"one that ends before the app starts":         {"crypto-broker", nil, false},
		"one with a policy that is not Always":        {"crypto-broker", &never, false},
		"another container that keeps running":        {"proxy", &always, false},
		"one whose name begins with the reserved one": {"crypto-broker-2", &always, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if found := contract.IsBroker(c.name, c.policy); found != c.want {
				t.Errorf("IsBroker is %t, expected %t", found, c.want)
			}
		})
	}
}

func TestTheStatusPortIsReadAsTheBrokerReadsIt(t *testing.T) {
	for sentence, c := range map[string]struct {
		arguments []string
		want      uint16
	}{
		"no argument":                  {nil, 0},
		"one argument":                 {[]string{"--status-address=:9470"}, 9470},
		"two arguments for one flag":   {[]string{"--status-address", ":9470"}, 9470},
		"the last of two":              {[]string{"--status-address=:9999", "--status-address=:9998"}, 9998},
		"a flag without its value":     {[]string{"--status-address"}, 0},
		"a port that is off":           {[]string{"--status-address="}, 0},
		"a port on one address":        {[]string{"--status-address=127.0.0.1:9470"}, 0},
		"a port that needs privileges": {[]string{"--status-address=:1023"}, 0},
		"the lowest port":              {[]string{"--status-address=:1024"}, 1024},
		"the highest port":             {[]string{"--status-address=:65535"}, 65535},
		"a port beyond all ports":      {[]string{"--status-address=:65536"}, 0},
		"a port that is no number":     {[]string{"--status-address=:http"}, 0},
		"an address without a port":    {[]string{"--status-address=9470"}, 0},
		"a flag with a similar name":   {[]string{"--status-address-of=:9470"}, 0},
		"what StatusAddress made":      {[]string{contract.Argument(contract.StatusAddressFlag, contract.StatusAddress(9471))}, 9471},
	} {
		t.Run(sentence, func(t *testing.T) {
			if found := contract.StatusPort(c.arguments); found != c.want {
				t.Errorf("the status port is %d, expected %d", found, c.want)
			}
		})
	}
}

func TestANamespaceThatIsLeftOutIsOfKubernetesOrNamed(t *testing.T) {
	for namespace, want := range map[string]bool{"kube-system": true, "kube-node-lease": true, "operator": true, "kube-public": false, "shop": false, "": false} {
		if found := contract.IsExcluded(namespace, "operator"); found != want {
			t.Errorf("IsExcluded(%q) is %t, expected %t", namespace, found, want)
		}
	}
	if contract.IsExcluded("operator") {
		t.Error("the operator's namespace is left out where nobody named it")
	}
}
