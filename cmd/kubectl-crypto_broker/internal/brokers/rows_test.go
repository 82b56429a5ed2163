// SPDX-License-Identifier: Apache-2.0

package brokers

import (
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers/brokerstest"

	"k8s.io/client-go/kubernetes/fake"
)

func TestOneNamespaceInWhichANewPodCanBeTriedIsEnough(t *testing.T) {
	client := fake.NewClientset(brokerstest.InjectedPod("a", "broker:1"), brokerstest.InjectedPod("b", "broker:2"))
	asked := brokerstest.OnlyIn(client, "b")
	rows, notes, err := Survey{Client: client, Judge: true}.Rows(t.Context(), "", "")
	if err != nil || len(notes) > 0 || len(rows) != 2 || rows[0].Broker != Outdated || rows[1].Broker != brokerCurrent || *asked != 2 {
		t.Errorf("found %+v, %q, %v after %d dry runs", rows, notes, err, *asked)
	}
}

func TestWithoutTheRightToTryANewPodThatIsSaidOnce(t *testing.T) {
	client := fake.NewClientset(brokerstest.InjectedPod("a", "broker:1"), brokerstest.InjectedPod("b", "broker:2"))
	brokerstest.OnlyIn(client, "")
	rows, notes, err := Survey{Client: client, Judge: true}.Rows(t.Context(), "", "")
	if err != nil || len(rows) != 2 || rows[0].Broker != Present || len(notes) != 1 ||
		notes[0] != "it is not known which brokers are outdated: the right to create pods in namespace b is missing (user jane)" {
		t.Errorf("found %+v, %q, %v", rows, notes, err)
	}
}

func TestWhatMissesABrokerIsListedWithoutTryingANewPod(t *testing.T) {
	client := fake.NewClientset(brokerstest.InjectedPod("a", "broker:1"))
	asked := brokerstest.OnlyIn(client, "a")
	if _, notes, err := (Survey{Client: client}).Rows(t.Context(), "", ""); err != nil || len(notes) > 0 || *asked != 0 {
		t.Errorf("found %q, %v after %d dry runs", notes, err, *asked)
	}
}
