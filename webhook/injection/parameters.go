// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// Parameters returns the parameters of a policy in the API server that injects brokers: the
// container and the volumes of Inject, made by the same code, without the parts that depend on
// the pod. A policy cannot read the ConfigMap with the profiles, so there is no snapshot and no
// lowest revision. cluster is the UID of kube-system. It is empty if brokers take sets without a
// signature.
//
// The error names the values of the template that cannot be used.
func Parameters(common template.Template, cluster string) (v1alpha1.InjectionTemplateSpec, error) {
	if err := common.Validate(); err != nil {
		return v1alpha1.InjectionTemplateSpec{}, err
	}
	gateway, withGateway := common.KeyGateway, stampOf(common)
	common.KeyGateway = ""
	typical := rendering{template: common, options: podOptions{socketDir: contract.SocketDir}, callers: []string{"app"}, statusPort: true}
	container := typical.container()
	container.Args, container.Ports = nil, nil
	socket, profiles := typical.volumes()

	spec := v1alpha1.InjectionTemplateSpec{
		FirstArguments: typical.firstArguments(),
		SocketGroup:    common.SocketGroup,
		StatusPort:     common.StatusPort,
		LogLevel:       common.LogLevel,
		RequireFIPS:    common.RequireFIPS,
		AllowedImages:  common.AllowedImages,
		Cluster:        cluster,
		Stamp:          stampOf(common),
	}
	if gateway != "" {
		spec.KeyGateway = &v1alpha1.InjectionTemplateKeyGateway{Address: gateway, Stamp: withGateway}
	}
	document, err := json.Marshal(container)
	if err != nil {
		return v1alpha1.InjectionTemplateSpec{}, fmt.Errorf("write the broker's container as JSON: %w", err)
	}
	spec.Container.Raw = document
	for _, volume := range []corev1.Volume{socket, profiles} {
		document, err := json.Marshal(volume)
		if err != nil {
			return v1alpha1.InjectionTemplateSpec{}, fmt.Errorf("write the volume %s as JSON: %w", volume.Name, err)
		}
		spec.Volumes = append(spec.Volumes, apiextensionsv1.JSON{Raw: document})
	}
	return spec, nil
}
