// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

func TestEveryNameThatAContainerCanHaveFitsIntoThePathOfASocket(t *testing.T) {
	longest := strings.Repeat("a", 63)
	pod, _, err := Inject(fixture.PodWith(func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = longest }), "shop", nil, testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	container := pod.Spec.InitContainers[0]
	options := unixsocket.Options{Callers: callersOf(&container), Group: 1}
	for _, argument := range container.Args {
		if dir, found := strings.CutPrefix(argument, contract.Argument(contract.SocketDirFlag, "")); found {
			options.Dir = dir
		}
	}
	if err := options.Validate(); err != nil {
		t.Errorf("the broker would refuse its arguments %q: %v", container.Args, err)
	}
}
