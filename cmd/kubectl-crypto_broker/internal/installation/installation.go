// SPDX-License-Identifier: Apache-2.0

// Package installation finds the operator in a cluster: the Service that the API server
// calls, the Deployment behind it, and the names in the Deployment's arguments.
package installation

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// DefaultNamespace is the namespace that the documentation installs the operator into.
const DefaultNamespace = "crypto-broker-system"

// container is the name of the operator's container.
const container = "operator"

// uncalled matches the API server's message when it cannot call a webhook of the operator.
var uncalled = regexp.MustCompile(`failed calling webhook "[a-z.]+\.` + regexp.QuoteMeta(v1alpha1.GroupVersion.Group) + `"`)

// Uncalled reports whether an error of the API server says that it could not call a
// webhook of the operator.
func Uncalled(message string) bool { return uncalled.MatchString(message) }

// Webhooks are the webhook configurations of the operator.
type Webhooks struct {
	Mutating   []admissionregistrationv1.MutatingWebhookConfiguration
	Validating []admissionregistrationv1.ValidatingWebhookConfiguration
}

// readWebhooks returns the webhook configurations whose webhooks call the operator at a
// Service in a namespace; in any namespace if it is empty.
func readWebhooks(ctx context.Context, client kubernetes.Interface, namespace string) (Webhooks, error) {
	configurations := client.AdmissionregistrationV1()
	mutating, err := configurations.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return Webhooks{}, err
	}
	validating, err := configurations.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return Webhooks{}, err
	}
	calls := func(name string, call admissionregistrationv1.WebhookClientConfig) bool {
		return strings.HasSuffix(name, "."+v1alpha1.GroupVersion.Group) && call.Service != nil && (namespace == "" || call.Service.Namespace == namespace)
	}
	var found Webhooks
	for _, c := range mutating.Items {
		if slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return calls(w.Name, w.ClientConfig) }) {
			found.Mutating = append(found.Mutating, c)
		}
	}
	for _, c := range validating.Items {
		if slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return calls(w.Name, w.ClientConfig) }) {
			found.Validating = append(found.Validating, c)
		}
	}
	return found, nil
}

// services returns the services that the webhooks name, each once.
func (w Webhooks) services() (all []admissionregistrationv1.ServiceReference) {
	add := func(call admissionregistrationv1.WebhookClientConfig) {
		if s := call.Service; s != nil && !slices.ContainsFunc(all, func(other admissionregistrationv1.ServiceReference) bool {
			return other.Namespace == s.Namespace && other.Name == s.Name
		}) {
			all = append(all, admissionregistrationv1.ServiceReference{Namespace: s.Namespace, Name: s.Name})
		}
	}
	for _, c := range w.Mutating {
		for i := range c.Webhooks {
			add(c.Webhooks[i].ClientConfig)
		}
	}
	for _, c := range w.Validating {
		for i := range c.Webhooks {
			add(c.Webhooks[i].ClientConfig)
		}
	}
	return all
}

// Operator has the objects of the operator that were found in a cluster.
type Operator struct {
	Namespace string
	// Webhooks are the webhook configurations that call the operator. WebhooksUnknown says why
	// they could not be read.
	Webhooks        Webhooks
	WebhooksUnknown error
	// Service is the Service that the webhooks call. It is nil if it is not known.
	Service *admissionregistrationv1.ServiceReference
	// Deployment is nil if there is none, or if DeploymentUnknown says why it could not
	// be read.
	Deployment        *appsv1.Deployment
	DeploymentUnknown error
}

// Find finds the operator by the webhook configurations that call it. If the user may not
// read them, or there are none, it looks into the namespace, by default [DefaultNamespace].
// It is an error if webhooks call operators in several namespaces and namespace is empty.
func Find(ctx context.Context, client kubernetes.Interface, namespace string) (Operator, error) {
	o := Operator{Namespace: namespace}
	if o.Webhooks, o.WebhooksUnknown = readWebhooks(ctx, client, namespace); ctx.Err() != nil {
		return o, ctx.Err()
	}
	var namespaces []string
	services := o.Webhooks.services()
	for _, service := range services {
		if !slices.Contains(namespaces, service.Namespace) {
			namespaces = append(namespaces, service.Namespace)
		}
	}
	switch {
	case len(namespaces) > 1:
		return o, fmt.Errorf("webhooks call operators in the namespaces %s: name one with --operator-namespace", strings.Join(namespaces, ", "))
	case len(namespaces) == 1:
		o.Namespace, o.Service = namespaces[0], &services[0]
	case namespace == "":
		o.Namespace = DefaultNamespace
	}
	o.Deployment, o.DeploymentUnknown = deployment(ctx, client, o)
	return o, nil
}

// deployment returns the operator's Deployment; nil if there is none.
func deployment(ctx context.Context, client kubernetes.Interface, o Operator) (*appsv1.Deployment, error) {
	if o.Service != nil {
		if found, err := Behind(ctx, client, o.Service); found != nil || err != nil {
			return found, err
		}
	}
	all, err := client.AppsV1().Deployments(o.Namespace).List(ctx, metav1.ListOptions{LabelSelector: partOf})
	if err != nil {
		return nil, err
	}
	for i := range all.Items {
		if operatorOf(&all.Items[i]) != nil {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

// partOf selects the objects of an installation.
const partOf = "app.kubernetes.io/part-of=crypto-broker"

// Behind returns the Deployment whose pods a Service selects; nil if there is no such
// Service or Deployment.
func Behind(ctx context.Context, client kubernetes.Interface, reference *admissionregistrationv1.ServiceReference) (*appsv1.Deployment, error) {
	service, err := client.CoreV1().Services(reference.Namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case len(service.Spec.Selector) == 0:
		return nil, nil
	}
	all, err := client.AppsV1().Deployments(reference.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range all.Items {
		if labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(all.Items[i].Spec.Template.Labels)) {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

// operatorOf returns the operator's container; nil if there is none.
func operatorOf(d *appsv1.Deployment) *corev1.Container {
	for i := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[i]; c.Name == container {
			return c
		}
	}
	return nil
}

// Image returns the operator's image, empty if it is not known.
func (o Operator) Image() string {
	if o.Deployment == nil {
		return ""
	}
	if c := operatorOf(o.Deployment); c != nil {
		return c.Image
	}
	return ""
}

// Version returns the version of the chart that installed the operator, empty if it is
// not known.
func (o Operator) Version() string {
	if o.Deployment == nil {
		return ""
	}
	return o.Deployment.Labels["app.kubernetes.io/version"]
}

// Argument returns the value of a flag of the operator, or otherwise if the Deployment is
// not known or does not set the flag.
func (o Operator) Argument(flag, otherwise string) string {
	if o.Deployment == nil {
		return otherwise
	}
	c := operatorOf(o.Deployment)
	if c == nil {
		return otherwise
	}
	if value, found := contract.ArgumentOf(c.Args, flag); found {
		return value
	}
	return otherwise
}

// FullName is the name that the objects of the installation have in common.
func (o Operator) FullName() string {
	if len(o.Webhooks.Mutating) > 0 {
		return o.Webhooks.Mutating[0].Name
	}
	if o.Deployment != nil {
		return o.Deployment.Name
	}
	return v1alpha1.FieldManager
}

// Replicas returns the wanted number of replicas of the operator.
func Replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// Hindrance returns why no replica of the operator runs, and what to do. It is empty if a replica
// runs.
func Hindrance(d *appsv1.Deployment) string {
	switch {
	case Replicas(d) == 0:
		return fmt.Sprintf("The operator is scaled to no replica. Scale it: kubectl scale deployment/%s -n %s --replicas=2", d.Name, d.Namespace)
	case d.Status.AvailableReplicas == 0:
		return fmt.Sprintf("The operator does not run. See why: kubectl get deployments,pods -n %s, and kubectl logs deployment/%s -n %s", d.Namespace, d.Name, d.Namespace)
	default:
		return ""
	}
}
