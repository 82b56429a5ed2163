// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	injectedpod "github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/patch"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// userRangeAnnotation is the annotation of namespaces on OpenShift with the range of
// user IDs that their pods may have.
const userRangeAnnotation = "openshift.io/sa.scc.uid-range"

// podInjector answers the API server about pods that are being created. It
// reads the pod's namespace and the namespace's profiles, and writes nothing. Its
// messages are the warnings and the audit annotations of the response. It answers a
// dry run like any other request.
type podInjector struct {
	decoder  admission.Decoder
	source   *source
	keys     Keys
	template template.Template
	// operatorNamespace is the operator's namespace, whose pods never get a broker.
	operatorNamespace string
	// audit receives a record of each pod. It is nil if there are no audit records.
	audit *audit.Log
}

var _ admission.Handler = &podInjector{}

// Keys of audit annotations. The API server adds the webhook's name before them.
const (
	auditResult = "result"
	auditReason = "reason"
)

// Handle implements admission.Handler.
func (p *podInjector) Handle(ctx context.Context, request admission.Request) admission.Response {
	begin := time.Now()
	event := audit.NewEvent("injection")
	response, result := p.answer(ctx, request, event)
	injectionDuration.Observe(time.Since(begin).Seconds())
	injections.WithLabelValues(result).Inc()
	if response.AuditAnnotations == nil {
		response.AuditAnnotations = map[string]string{}
	}
	response.AuditAnnotations[auditResult] = result
	if request.DryRun == nil || !*request.DryRun {
		p.audit.AddEvent(event.Text("result", result).Text("reason", reasonOf(response)).
			Text("k8s.namespace.name", request.Namespace).Text("user.name", request.UserInfo.Username).Text("user.id", request.UserInfo.UID))
	}
	return response
}

// reasonOf returns why a pod got no broker.
func reasonOf(response admission.Response) string {
	if reason := response.AuditAnnotations[auditReason]; reason != "" || response.Allowed {
		return reason
	}
	return response.Result.Message
}

// describe adds the pod to a record. The name may be empty, because the API server may choose it
// later.
func describe(event *audit.Event, pod *corev1.Pod) {
	if event.Text("k8s.pod.name", pod.Name); pod.Name == "" {
		event.Text("k8s.pod.generate_name", pod.GenerateName)
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		event.Text("owner.kind", owner.Kind).Text("owner.name", owner.Name)
	}
	event.Text("profiles", pod.Annotations[contract.AllowedProfilesAnnotation])
}

// answer decides about a pod, and adds the result to the event.
func (p *podInjector) answer(ctx context.Context, request admission.Request, event *audit.Event) (admission.Response, string) {
	if request.Operation != admissionv1.Create || request.SubResource != "" || request.Kind.Kind != "Pod" {
		return skip("not the creation of a pod"), resultSkipped
	}
	if contract.IsExcluded(request.Namespace, p.operatorNamespace) {
		return skip("excluded namespace"), resultSkipped
	}
	pod := &corev1.Pod{}
	if err := p.decoder.Decode(request, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("the pod cannot be read: %w", err)), resultError
	}
	describe(event, pod)
	namespace, err := p.namespaceOf(ctx, pod, request.Namespace)
	if err == nil && namespace == nil {
		err = errors.New("it does not exist")
	}
	if err != nil {
		return failed(ctx, fmt.Errorf("namespace %q, whose label decides whether the pod gets a broker, could not be read: %w", request.Namespace, err)), resultError
	}

	decision, err := injection.Decide(pod, asksForAll(namespace))
	if err != nil {
		return refuse(err), resultRefused
	}
	if !decision.Inject {
		response := skip(decision.Reason)
		if decision.Warning != "" {
			response = response.WithWarnings(decision.Warning)
		}
		return response, resultSkipped
	}

	profiles, signature, warnings := p.profiles(ctx, request.Namespace)
	template := p.template
	if template.Seal, err = p.seal(ctx, namespace, profiles, signature); err != nil {
		return failed(ctx, err), resultError
	}
	_, template.NamespaceUserIDs = namespace.Annotations[userRangeAnnotation]
	injected, more, err := injection.Inject(pod, request.Namespace, profiles, template)
	var refusal *injection.Refusal
	switch {
	case errors.As(err, &refusal):
		return refuse(err), resultRefused
	case err != nil:
		return failed(ctx, err), resultError
	}
	event.Text("container.image.name", injectedpod.Broker(injected).Image)
	if len(profiles) > 0 {
		event.Text("profiles.digest", profile.Digest(profiles))
	}
	response := admission.Patched("", patch.Between(pod, injected)...).WithWarnings(append(warnings, more...)...)
	return response, resultInjected
}

// namespaceOf returns the pod's namespace, or nil if there is none. The API server sends a pod
// without the annotation only if its namespace has the label. If the cached namespace has no
// label, the cache is outdated, and the pod would run without a broker. Only then does
// namespaceOf read from the API server.
func (p *podInjector) namespaceOf(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Namespace, error) {
	_, says := pod.Annotations[contract.InjectAnnotation]
	return readUnless(ctx, p.source, client.ObjectKey{Name: name}, func(cached *corev1.Namespace) bool {
		return !says && !asksForAll(cached)
	})
}

// asksForAll reports whether a namespace asks for brokers in pods without the
// annotation.
func asksForAll(namespace *corev1.Namespace) bool {
	return namespace.Labels[contract.InjectionLabel] == contract.InjectionEnabled
}

// profiles returns the namespace's profile file and its signature, or nil if there is none. If
// the file cannot be read, it is empty and not nil, and a warning says so. The pod is admitted
// nevertheless, because it also gets the profiles from the ConfigMap, and its broker serves
// nothing without them.
func (p *podInjector) profiles(ctx context.Context, namespace string) (profiles, signature []byte, warnings []string) {
	key := types.NamespacedName{Namespace: namespace, Name: v1alpha1.ProfilesConfigMap}
	found, err := read[corev1.ConfigMap](ctx, p.source, key)
	if err != nil {
		log.FromContext(ctx).Error(err, "the profiles could not be read, the pod gets no snapshot of them", "configMap", key)
		return []byte{}, nil, []string{fmt.Sprintf("the profiles of namespace %q could not be read now: the pod gets them a little later", namespace)}
	}
	if found == nil {
		return nil, nil, nil
	}
	if file, ok := found.Data[profile.FileName]; ok {
		return []byte(file), []byte(found.Data[signed.FileName]), nil
	}
	return nil, nil, nil
}

func skip(reason string) admission.Response {
	response := admission.Allowed("")
	response.AuditAnnotations = map[string]string{auditReason: reason}
	return response
}

// refuse refuses a pod because of an error, which is an *injection.Refusal.
func refuse(err error) admission.Response {
	if refusal := (*injection.Refusal)(nil); errors.As(err, &refusal) {
		injectionRefusals.WithLabelValues(string(refusal.Reason)).Inc()
	}
	response := admission.Denied(err.Error())
	response.AuditAnnotations = map[string]string{auditReason: err.Error()}
	return response
}

// failed refuses a request after an error. The webhook fails closed, so the pod is not created.
func failed(ctx context.Context, err error) admission.Response {
	log.FromContext(ctx).Error(err, "could not decide whether a pod gets a broker")
	return admission.Errored(http.StatusInternalServerError, err)
}
