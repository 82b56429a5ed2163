// SPDX-License-Identifier: Apache-2.0

package injection_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

func ExampleInject() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "app", Annotations: map[string]string{"cryptobroker.io/inject": "true"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}},
	}
	injected, warnings, err := injection.Inject(pod, "shop", nil, template.Template{
		Image: "example.com/broker:1", SocketGroup: 60471, StatusPort: 9470, Version: "1.0.0",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(injected.Spec.InitContainers[0].Name, *injected.Spec.InitContainers[0].RestartPolicy)
	fmt.Println(injected.Spec.Containers[0].VolumeMounts[0].MountPath)
	fmt.Println(warnings)

	pod.Annotations["cryptobroker.io/inject"] = "yes"
	_, _, err = injection.Inject(pod, "shop", nil, template.Template{})
	fmt.Println(err)
	// Output:
	// crypto-broker Always
	// /tmp/open-crypto-broker
	// [namespace "shop" has no crypto profile yet: the pod waits until it has one, and its broker is restarted every ten minutes]
	// metadata.annotations[cryptobroker.io/inject]: found "yes", expected "true" to get a broker or "false" to get none
}
