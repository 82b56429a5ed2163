// SPDX-License-Identifier: Apache-2.0

// Package brokers finds the pods of a cluster that have a broker, or that asked for one and have
// none. It finds out what each broker serves, and whether a new pod would get another broker.
package brokers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/coverage"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// States of the broker of a pod.
const (
	brokerCurrent = "current"  // the broker is the same as in a new pod
	Outdated      = "outdated" // the broker differs from the broker of a new pod
	Present       = "present"  // there is a broker, but the broker of a new pod is not known
	Missing       = "missing"  // the pod has no broker, and should have one
	None          = "none"     // the pod has no broker, and wants none
)

// States of the set of profiles that a broker serves.
const (
	SetUpdated  = "updated"  // the broker serves the namespace's set
	SetBehind   = "behind"   // it serves another set
	SetRefused  = "refused"  // it serves another set, and refused a newer one
	SetPartial  = "partial"  // it serves the namespace's set without some profiles
	SetStarting = "starting" // it serves none yet
	SetUnknown  = "unknown"  // not known; Note says why
)

// Row is the row of a pod in the tables.
type Row struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Workload is the workload to restart for a new pod, as kind/name.
	Workload string `json:"workload,omitempty"`
	Broker   string `json:"broker"`
	Set      string `json:"set,omitempty"`
	// Digest, Revision, Since and Reason are from the broker's own answer.
	Digest   string     `json:"digest,omitempty"`
	Revision int64      `json:"revision,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	// Version is the version of the operator that injected the broker.
	Version string `json:"version,omitempty"`
	Image   string `json:"image,omitempty"`
	Node    string `json:"node,omitempty"`
	// Note says why something is not known or wrong.
	Note string `json:"note,omitempty"`

	Owner workload.Owner `json:"-"`
	// leftOut reports whether new pods of the pod's namespace never get a broker.
	leftOut bool
	// doubt says why leftOut is not known. It is empty if leftOut is known.
	doubt string
}

// askers is the number of brokers that are asked at a time.
const askers = 16

// Survey lists the pods of a namespace, or of all namespaces, with their brokers.
type Survey struct {
	Client kubernetes.Interface
	// Ask makes the survey ask brokers which set they serve.
	Ask bool
	// AskIn restricts Ask to brokers of some namespaces. It is nil for all namespaces. A broker
	// that has not started is always described.
	AskIn func(namespace string) bool
	// Judge makes the survey mark outdated brokers.
	Judge bool
	// All makes the survey list pods that ask for no broker, too.
	All bool
	// Owners are the known owners of pods, or nil.
	Owners *workload.Owners
}

// Rows returns the pods in the order of namespace and name, and notes about facts that could not
// be found out.
func (s Survey) Rows(ctx context.Context, namespace, selector string) (rows []Row, notes []string, err error) {
	pods, err := s.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	switch {
	case apierror.LacksRight(err) && namespace == "":
		return nil, nil, fmt.Errorf("%w: name one namespace with -n", err)
	case err != nil:
		return nil, nil, err
	}
	found := make([]*corev1.Pod, len(pods.Items))
	for i := range pods.Items {
		found[i] = &pods.Items[i]
	}
	return s.Of(ctx, found, namespace)
}

// Of is Rows for pods that the caller has read: the pods of a namespace, or of all namespaces if
// namespace is empty.
func (s Survey) Of(ctx context.Context, pods []*corev1.Pod, namespace string) (rows []Row, notes []string, err error) {
	namespaces, err := s.namespaces(ctx, namespace)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, fmt.Errorf("there is no namespace %q", namespace)
	case err != nil:
		notes = append(notes, "it is not known which namespaces ask for brokers by label or are left out, so the list may lack pods or have too many: "+apierror.OneLine(apierror.Plain(err)))
	}
	reach := coverage.NewReach(ctx, s.Client, namespaces)
	owners := s.Owners
	if owners == nil {
		owners = workload.NewOwners(s.Client)
	}
	sets := NewSets(s.Client)
	var asked []int // rows of brokers to ask
	var live []*corev1.Pod
	for _, pod := range pods {
		if workload.Ended(pod) {
			continue
		}
		leftOut, unknown := reach.LeavesOut(pod.Namespace)
		r := describe(pod, namespaces[pod.Namespace][contract.InjectionLabel] == contract.InjectionEnabled, leftOut)
		if unknown != nil {
			r.doubt = apierror.OneLine(apierror.Plain(unknown))
		}
		if r.Broker == None && !s.All {
			continue
		}
		if r.Owner, err = owners.Of(ctx, pod); err != nil {
			return nil, nil, err
		}
		r.Workload = r.Owner.String()
		if r.Broker == Present && s.Ask && (s.AskIn == nil || s.AskIn(r.Namespace) || !Started(pod)) {
			asked = append(asked, len(rows))
		}
		rows = append(rows, r)
		live = append(live, pod)
	}
	if s.Judge {
		notes = append(notes, s.judgeTemplates(ctx, rows, live)...)
	}
	var group errgroup.Group
	group.SetLimit(askers)
	for _, i := range asked {
		group.Go(func() error {
			Served(ctx, s.Client, live[i], &rows[i], sets)
			return nil
		})
	}
	if err := errors.Join(group.Wait(), ctx.Err()); err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return strings.Compare(a.Namespace+"/"+a.Pod, b.Namespace+"/"+b.Pod)
	})
	return rows, notes, nil
}

// namespaces returns the labels of namespaces. Namespaces ask for brokers by a label,
// and webhooks and policies select them by labels.
func (s Survey) namespaces(ctx context.Context, namespace string) (map[string]labels.Set, error) {
	all := map[string]labels.Set{}
	if namespace != "" {
		ns, err := s.Client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if err != nil {
			return all, err
		}
		all[namespace] = ns.Labels
		return all, nil
	}
	list, err := s.Client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return all, err
	}
	for i := range list.Items {
		all[list.Items[i].Name] = list.Items[i].Labels
	}
	return all, nil
}

// IsLabelled reports whether pods of a namespace get a broker by default.
func IsLabelled(ns *corev1.Namespace) bool {
	return ns.Labels[contract.InjectionLabel] == contract.InjectionEnabled
}

// tries is the number of namespaces in which a dry run is tried, because the user may lack the
// right to create pods in some.
const tries = 5

// judgeTemplates marks brokers as current or outdated, by comparing them with the
// broker of a new pod. That broker is the same in all namespaces that are not left out.
// If a dry run gets a broker, its namespace is not left out.
func (s Survey) judgeTemplates(ctx context.Context, rows []Row, pods []*corev1.Pod) (notes []string) {
	var asked []string
	var now *corev1.Pod
	var err error
	for _, r := range rows {
		if r.Broker != Present || r.leftOut || slices.Contains(asked, r.Namespace) {
			continue
		}
		asked = append(asked, r.Namespace)
		if now, err = NewPod(ctx, s.Client, r.Namespace); err == nil || len(asked) == tries {
			break
		}
	}
	switch {
	case err != nil:
		return []string{"it is not known which brokers are outdated: " + apierror.OneLine(apierror.Plain(err))}
	case now == nil:
		return nil
	}
	for i := range rows {
		if rows[i].Namespace == asked[len(asked)-1] {
			rows[i].doubt = ""
		}
		if rows[i].Broker != Present || rows[i].leftOut {
			continue
		}
		rows[i].Broker = brokerCurrent
		if isOutdated(pods[i], now) {
			rows[i].Broker = Outdated
		}
	}
	return nil
}

// describe returns the row of a pod as far as the pod itself shows it. leftOut reports
// whether its namespace is left out.
func describe(pod *corev1.Pod, byDefault, leftOut bool) Row {
	r := Row{Namespace: pod.Namespace, Pod: pod.Name, Node: pod.Spec.NodeName, Broker: None, leftOut: leftOut}
	if leftOut {
		r.Note = coverage.ExcludedNamespace
	}
	if broker := injected.Broker(pod); broker != nil {
		r.Broker, r.Image, r.Version = Present, broker.Image, versionOf(pod)
		return r
	}
	if leftOut {
		return r
	}
	decision, err := injection.Decide(pod, byDefault)
	switch {
	case err != nil:
		r.Broker, r.Note = Missing, err.Error()
	case decision.Inject:
		r.Broker = Missing
	default:
		r.Note = decision.Reason
	}
	return r
}

// Doubt returns a note if rows has pods of a namespace of which it is not known whether it is
// left out. Otherwise the note is empty.
func Doubt(rows []Row) string {
	for _, r := range rows {
		if r.doubt != "" && (r.Broker == Missing || r.Broker == Outdated) {
			return "it is not known which namespaces are left out, so a restart may give some of the listed pods no broker: " + r.doubt
		}
	}
	return ""
}
