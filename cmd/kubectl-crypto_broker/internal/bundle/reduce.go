// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

// annotations are the annotations in the archive.
var annotations = []string{
	contract.InjectAnnotation, contract.AllowedProfilesAnnotation, contract.ContainersAnnotation, contract.SocketPathAnnotation,
	contract.CPURequestAnnotation, contract.CPULimitAnnotation, contract.MemoryRequestAnnotation, contract.MemoryLimitAnnotation,
	contract.LogLevelAnnotation, contract.MetricsPortAnnotation, contract.ImageAnnotation, contract.ProfilesDigestAnnotation,
	contract.InjectedAnnotation, v1alpha1.AllowWeakerAnnotation, v1alpha1.ProfilesHistoryAnnotation, v1alpha1.OldestProfilesAnnotation,
}

// labels are the labels in the archive.
var labels = []string{
	contract.InjectionLabel, v1alpha1.CatalogueLabel, corev1.LabelMetadataName,
	"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/part-of", "app.kubernetes.io/managed-by",
}

// flags are the flags of the operator whose values the archive has.
var flags = []string{
	"leader-elect", "log-level", "log-format", "metrics-bind-address", "health-probe-bind-address", "webhook-port", "webhook-service-name",
	"ca-secret-name", "key-gateway-service", "signing-secret-name", "signing-key-lifetime", "injection-template", "mutating-webhook-configuration",
	"validating-webhook-configuration", "propagation", "excluded-namespaces", "catalogue", "catalogue-namespaces", "minimum-strength",
	"broker-image", "allowed-broker-images", "broker-image-pull-policy", "broker-status-port", "broker-cpu-request", "broker-memory-request",
	"broker-memory-limit", "broker-log-level", "broker-require-fips", "socket-group", "audit", "traces-ratio", "metrics-secure",
	"webhook-certificate-dir", "key-access-rego-dir", "broker-certificates", "broker-traces-protocol", "broker-traces-sampler",
	"broker-traces-sampler-argument",
}

// operatorContainer is the container of the operator's pods that has its log and its arguments.
const operatorContainer = "operator"

// about identifies an object.
type about struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
	UID         string            `json:"uid,omitempty"`
	Generation  int64             `json:"generation,omitempty"`
	Created     time.Time         `json:"created,omitzero"`
	Deleting    bool              `json:"deleting,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// aboutOf copies what identifies an object.
func aboutOf(object metav1.Object) about {
	pick := func(all map[string]string, names []string) map[string]string {
		picked := map[string]string{}
		for _, name := range names {
			if value, is := all[name]; is {
				picked[name] = value
			}
		}
		return picked
	}
	return about{
		Name: object.GetName(), Namespace: object.GetNamespace(), UID: string(object.GetUID()), Generation: object.GetGeneration(),
		Created: object.GetCreationTimestamp().UTC(), Deleting: object.GetDeletionTimestamp() != nil,
		Labels: pick(object.GetLabels(), labels), Annotations: pick(object.GetAnnotations(), annotations),
	}
}

// withoutSettings returns a profile's spec without the settings of a key manager.
func withoutSettings(spec v1alpha1.ProfileSpec) v1alpha1.ProfileSpec {
	spec.KMS = nil
	return spec
}

// namespacedProfile is a CryptoProfile in the archive.
type namespacedProfile struct {
	About  about                  `json:"metadata"`
	Spec   v1alpha1.ProfileSpec   `json:"spec"`
	Status v1alpha1.ProfileStatus `json:"status"`
}

// clusterProfile is a ClusterCryptoProfile in the archive.
type clusterProfile struct {
	About  about                         `json:"metadata"`
	Spec   v1alpha1.ClusterProfileSpec   `json:"spec"`
	Status v1alpha1.ClusterProfileStatus `json:"status"`
}

// set is the ConfigMap of a namespace's profiles in the archive.
type set struct {
	About    about     `json:"metadata"`
	Digest   string    `json:"digest,omitempty"`
	Revision int64     `json:"revision,omitempty"`
	Signed   time.Time `json:"signed,omitzero"`
	Keys     []string  `json:"keys,omitempty"`
	// Profiles is the profile file without settings of key managers.
	Profiles string `json:"profiles,omitempty"`
}

func setOf(found *corev1.ConfigMap) set {
	s := set{About: aboutOf(found)}
	file, is := found.Data[profile.FileName]
	if !is {
		return s
	}
	s.Digest = profile.Digest([]byte(file))
	if statement, keys, err := signed.Read([]byte(found.Data[signed.FileName])); err == nil {
		s.Revision, s.Signed, s.Keys = statement.Revision, statement.Time, keys
	}
	document, _ := profile.Parse(profile.FileName, []byte(file))
	if document == nil {
		return s
	}
	document.KMS = nil
	for i := range document.Profiles {
		document.Profiles[i].KMS = nil
	}
	if text, err := profile.Marshal(document); err == nil {
		s.Profiles = string(text)
	}
	return s
}

// pod is a pod with a broker in the archive.
type pod struct {
	About  about  `json:"metadata"`
	Node   string `json:"node,omitempty"`
	Phase  string `json:"phase"`
	Image  string `json:"image"`
	Status string `json:"status"`
	// Trusts are the ids of the signing keys that the broker trusts.
	Trusts   []string `json:"trusts,omitempty"`
	Restarts int32    `json:"restarts"`
}

func podOf(p *corev1.Pod) pod {
	reduced := pod{About: aboutOf(p), Node: p.Spec.NodeName, Phase: string(p.Status.Phase), Image: injected.Broker(p).Image, Status: "unknown", Trusts: signing.TrustedBy(p)}
	status := injected.BrokerStatus(p)
	if status == nil {
		return reduced
	}
	reduced.Restarts = status.RestartCount
	switch {
	case status.State.Running != nil:
		reduced.Status = "running since " + status.State.Running.StartedAt.UTC().Format(time.RFC3339)
	case status.State.Waiting != nil:
		reduced.Status = "waits: " + status.State.Waiting.Reason
	case status.State.Terminated != nil:
		reduced.Status = "ended: " + status.State.Terminated.Reason
	}
	if last := status.LastTerminationState.Terminated; last != nil {
		reduced.Status += fmt.Sprintf(", ended before with %s, exit code %d", last.Reason, last.ExitCode)
	}
	return reduced
}

// deployment is the operator's Deployment in the archive.
type deployment struct {
	About     about                       `json:"metadata"`
	Replicas  int32                       `json:"replicas"`
	Available int32                       `json:"available"`
	Updated   int32                       `json:"updated"`
	Image     string                      `json:"image"`
	Arguments []string                    `json:"arguments,omitempty"`
	Variables []string                    `json:"variables,omitempty"`
	Resources corev1.ResourceRequirements `json:"resources"`
}

func deploymentOf(d *appsv1.Deployment, replicas int32) deployment {
	reduced := deployment{About: aboutOf(d), Replicas: replicas, Available: d.Status.AvailableReplicas, Updated: d.Status.UpdatedReplicas}
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.Name != operatorContainer {
			continue
		}
		reduced.Image, reduced.Resources = c.Image, corev1.ResourceRequirements{Limits: c.Resources.Limits, Requests: c.Resources.Requests}
		reduced.Arguments, _ = reduceArguments(c.Args)
		for _, variable := range c.Env {
			reduced.Variables = append(reduced.Variables, variable.Name)
		}
	}
	return reduced
}

// reduceArguments returns the operator's arguments for the archive, and the texts of the arguments that it
// leaves out.
func reduceArguments(arguments []string) (reduced, leftOut []string) {
	for _, argument := range arguments {
		flag, value, has := strings.Cut(argument, "=")
		isFlag := strings.HasPrefix(flag, "--")
		switch known := isFlag && slices.Contains(flags, strings.TrimPrefix(flag, "--")); {
		case known:
			reduced = append(reduced, argument)
		case isFlag && has:
			reduced, leftOut = append(reduced, flag), append(leftOut, value)
		case !isFlag:
			leftOut = append(leftOut, argument)
		}
	}
	return reduced, leftOut
}

// webhook is an entry of a webhook configuration in the archive.
type webhook struct {
	Configuration string                `json:"configuration"`
	Name          string                `json:"name"`
	Service       string                `json:"service,omitempty"`
	FailurePolicy string                `json:"failurePolicy,omitempty"`
	Namespaces    *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// Authorities identify the certificates in the caBundle.
	Authorities []string `json:"authorities,omitempty"`
}

func webhookOf(configuration, name string, call admissionregistrationv1.WebhookClientConfig, policy *admissionregistrationv1.FailurePolicyType, namespaces *metav1.LabelSelector) webhook {
	w := webhook{Configuration: configuration, Name: name, Namespaces: namespaces}
	if s := call.Service; s != nil {
		w.Service = s.Namespace + "/" + s.Name
	}
	if policy != nil {
		w.FailurePolicy = string(*policy)
	}
	for block, rest := pem.Decode(call.CABundle); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			sum := sha256.Sum256(certificate.Raw)
			w.Authorities = append(w.Authorities, fmt.Sprintf("%s, valid until %s", hex.EncodeToString(sum[:8]), certificate.NotAfter.UTC().Format(time.RFC3339)))
		}
	}
	return w
}

// event is an event of the operator in the archive.
type event struct {
	Time   time.Time `json:"time,omitzero"`
	Count  int32     `json:"count,omitempty"`
	Type   string    `json:"type"`
	Reason string    `json:"reason"`
	About  string    `json:"about"`
	Note   string    `json:"note"`
}
