// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// connect asks to run a program in a container, or to attach to it, as a user;
// without one, with every right. The container "" is left for the API server to
// choose. There is no kubelet here, so an allowed request ends with another error than Forbidden.
func (s *apiServer) connect(ctx context.Context, user, how, namespace, pod, container string) error {
	config := rest.CopyConfig(s.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return err
	}
	request := c.Post().Namespace(namespace).Resource("pods").Name(pod).SubResource(how).Param("stdout", "true")
	if how == "exec" {
		request = request.Param("command", "/broker")
	}
	if container != "" {
		request = request.Param("container", container)
	}
	return request.Do(ctx).Error()
}

func TestNobodyRunsAProgramInABroker(t *testing.T) {
	const refusal = "nobody runs programs in the container crypto-broker"
	tests := map[string]struct {
		how       string
		container string
		refusal   string
	}{
		"a program in the broker's container":        {how: "exec", container: contract.BrokerContainer, refusal: refusal},
		"to attach to the broker's container":        {how: "attach", container: contract.BrokerContainer, refusal: refusal},
		"a program in the app's container":           {how: "exec", container: "app"},
		"to attach to the app's container":           {how: "attach", container: "app"},
		"a program in the container that is default": {how: "exec"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			namespace := namespaceFor(t, nil)
			create(t, clusterAdmin(t), brokerPod(namespace, "pod"))
			namespaceAdmin(t, namespace)

			for _, user := range []string{"", "admin-of-" + namespace} {
				err := server.connect(t.Context(), user, test.how, namespace, "pod", test.container)
				if test.refusal != "" {
					verdict(t, err, test.refusal)
					continue
				}
				if err == nil || apierrors.IsForbidden(err) {
					t.Errorf("as %q: found %v, expected the request to get past the policies, to a node that isn't there", user, err)
				}
			}
		})
	}
}
