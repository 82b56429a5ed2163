// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=crypto-broker
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.container.image`,description="The image of brokers"
// +kubebuilder:printcolumn:name="Stamp",type=string,JSONPath=`.spec.stamp`,description="Version of the operator and digest of the template, as in the annotation of injected pods"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// InjectionTemplate has what the brokers of all pods have in common. It is the
// parameter of the MutatingAdmissionPolicy that injects brokers if the chart
// injects by policy. Only the operator writes it. To change it, change the
// values of the chart.
type InjectionTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the template.
	// Example: {stamp: 0.1.0/1f0c6a7e9b2d, socketGroup: 60471, statusPort: 9470}.
	// +required
	Spec InjectionTemplateSpec `json:"spec"`
}

// InjectionTemplateSpec is what the brokers of all pods have in common.
type InjectionTemplateSpec struct {
	// container is the broker's container without what depends on the pod: its
	// arguments, its port, and its probe if no port is open.
	// Example: {name: crypto-broker, image: registry.example/broker:1.0.0}.
	// +required
	Container apiextensionsv1.JSON `json:"container"`

	// volumes are the volumes of the sockets and of the profiles.
	// Example: [{name: crypto-broker-socket, emptyDir: {medium: Memory}}].
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Volumes []apiextensionsv1.JSON `json:"volumes"`

	// firstArguments are the first arguments of the broker in all pods.
	// Example: ["--profiles-dir=/etc/crypto-broker/profiles"].
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	FirstArguments []string `json:"firstArguments"`

	// socketGroup is the ID of the group that owns the sockets.
	// Example: 60471.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	SocketGroup int64 `json:"socketGroup"`

	// statusPort is the port for probes, metrics and the digest that is served.
	// Example: 9470.
	// +required
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	StatusPort int32 `json:"statusPort"`

	// logLevel is the log level of brokers whose pod does not set another. If it
	// is empty, the broker has its own default. Example: info.
	// +optional
	LogLevel string `json:"logLevel,omitempty"`

	// requireFIPS makes brokers refuse operations that FIPS 140-3 does not
	// approve.
	// Example: true.
	// +optional
	RequireFIPS bool `json:"requireFIPS,omitempty"`

	// allowedImages are the images that a pod may ask for instead of the image of
	// container.
	// Example: ["registry.example/broker:1.1.0"].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	AllowedImages []string `json:"allowedImages,omitempty"`

	// cluster is the UID of the namespace kube-system. Brokers refuse sets of
	// profiles that are signed for another cluster.
	// Example: 4f6c5a0e-2d5e-4a55-8f50-2b8d6f3a9c11.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// stamp is the version of the operator and a digest of the template:
	// "<version>/<12 hex digits>". Example: 0.1.0/1f0c6a7e9b2d.
	// +required
	Stamp string `json:"stamp"`

	// keyGateway is what brokers have besides, if their pods are in namespaces
	// with keys of key providers. It is absent without a key gateway.
	// Example: {address: "gateway.system.svc:8443",
	// stamp: 0.1.0/1f0c6a7e9b2d-9b2d1f0c6a7e}.
	// +optional
	KeyGateway *InjectionTemplateKeyGateway `json:"keyGateway,omitempty"`
}

// InjectionTemplateKeyGateway is what brokers have that can call the key
// gateway.
type InjectionTemplateKeyGateway struct {
	// address is host:port of the key gateway.
	// Example: crypto-broker-key-gateway.crypto-broker-system.svc:8443.
	// +required
	Address string `json:"address"`

	// stamp is the stamp of pods with such a broker: the other stamp, "-" and 12
	// more digits. Example: 0.1.0/1f0c6a7e9b2d-9b2d1f0c6a7e.
	// +required
	Stamp string `json:"stamp"`
}

// +kubebuilder:object:root=true

// InjectionTemplateList is a list of InjectionTemplates.
type InjectionTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InjectionTemplate `json:"items"`
}
