// SPDX-License-Identifier: Apache-2.0

package brokers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// askTimeout bounds one request to a broker through the API server.
const askTimeout = 5 * time.Second

// refusals are the reasons of brokers that refused a newer set.
var refusals = []directory.Reason{directory.SetRejected, directory.SignatureRejected, directory.RevisionRejected, directory.NotKept}

var digestPattern = regexp.MustCompile(`^(sha256:[0-9a-f]{64})?$`)

// Served asks a pod's broker through the API server's proxy which set it serves, and
// writes the answer into the row.
func Served(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, r *Row, sets *Sets) {
	r.Set = SetUnknown
	if !Started(pod) {
		r.Set, r.Note = SetStarting, Waiting(ctx, pod, sets)
		return
	}
	port := contract.StatusPort(injected.Broker(pod).Args)
	if pod.Spec.HostNetwork || port == 0 {
		r.Note = "the broker has no status port"
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	body, err := client.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, strconv.Itoa(int(port)), contract.ProfilesPath, nil).DoRaw(ctx)
	if apierrors.IsForbidden(err) {
		r.Note = "asking the broker needs the right to get pods/proxy"
		return
	}
	if err != nil {
		r.Note = "the broker did not answer: " + apierror.OneLine(err.Error())
		return
	}
	var answer confirm.Answer
	if len(body) > confirm.MaxBody || json.Unmarshal(body, &answer) != nil || !digestPattern.MatchString(answer.Digest) {
		r.Note = "the broker's answer is not the expected JSON"
		return
	}
	r.Digest, r.Revision, r.Reason = answer.Digest, answer.Revision, answer.Reason
	if !answer.Since.IsZero() {
		r.Since = &answer.Since
	}
	target, err := sets.of(ctx, pod.Namespace)
	switch {
	case err != nil:
		r.Note = "the namespace's set is not known: " + apierror.OneLine(apierror.Plain(err))
	case answer.Reason == string(directory.SignatureRejected): // even if the broker serves a set with this digest
		r.Set = SetRefused
	case answer.Digest == target && answer.Reason == string(directory.ProfilesRejected):
		r.Set = SetPartial
	case answer.Digest == target:
		r.Set = SetUpdated
	case slices.Contains(refusals, directory.Reason(answer.Reason)):
		r.Set = SetRefused
	default:
		r.Set = SetBehind
	}
}

// Started reports whether the broker has started, by the pod's status.
func Started(pod *corev1.Pod) bool {
	status := injected.BrokerStatus(pod)
	return status != nil && status.Started != nil && *status.Started
}

// Sets reads and remembers the sets of profiles that the brokers of each namespace should serve.
type Sets struct {
	client kubernetes.Interface

	mu    sync.Mutex
	known map[string]func() (*corev1.ConfigMap, error)
}

// NewSets returns Sets that have read nothing yet.
func NewSets(client kubernetes.Interface) *Sets {
	return &Sets{client: client, known: map[string]func() (*corev1.ConfigMap, error){}}
}

// of returns the digest of the namespace's set, which may have no profiles.
func (s *Sets) of(ctx context.Context, namespace string) (string, error) {
	file, err := s.file(ctx, namespace)
	if err != nil {
		return "", err
	}
	return profile.Digest([]byte(file)), nil
}

// None reports whether the namespace has no set or an empty one, so that its brokers do not
// start. It returns false if the set cannot be read.
func (s *Sets) None(ctx context.Context, namespace string) bool {
	file, err := s.file(ctx, namespace)
	return apierrors.IsNotFound(err) || errors.Is(err, errNoSet) || err == nil && profile.Empty([]byte(file))
}

// BaselineMissing reports whether the operator serves nothing new in the namespace because its
// baseline is missing. It returns false if that is not known.
func (s *Sets) BaselineMissing(ctx context.Context, namespace string) bool {
	set, err := s.configMap(ctx, namespace)
	if err != nil {
		return false
	}
	// Annotations that cannot be read count as missing, as for the operator.
	served, _ := downgrade.Read(set.Data[profile.FileName], set.Annotations, render.Result{})
	return served.IsUnknown()
}

// WithKeyGateway reports whether brokers of the namespace are known to need the key gateway:
// the operator gives them the authorities of its certificate with the set.
func (s *Sets) WithKeyGateway(ctx context.Context, namespace string) bool {
	set, err := s.configMap(ctx, namespace)
	return err == nil && set.Data[contract.KeyGatewayAuthorities] != ""
}

// file returns the profile file of the namespace.
func (s *Sets) file(ctx context.Context, namespace string) (string, error) {
	set, err := s.configMap(ctx, namespace)
	if err != nil {
		return "", err
	}
	file, is := set.Data[profile.FileName]
	if !is {
		return "", fmt.Errorf("the ConfigMap %s has no %s: %w", v1alpha1.ProfilesConfigMap, profile.FileName, errNoSet)
	}
	return file, nil
}

// configMap returns the ConfigMap of the namespace's profiles. It asks the API server once.
func (s *Sets) configMap(ctx context.Context, namespace string) (*corev1.ConfigMap, error) {
	s.mu.Lock()
	once, ok := s.known[namespace]
	if !ok {
		once = sync.OnceValues(func() (*corev1.ConfigMap, error) {
			return s.client.CoreV1().ConfigMaps(namespace).Get(ctx, v1alpha1.ProfilesConfigMap, metav1.GetOptions{})
		})
		s.known[namespace] = once
	}
	s.mu.Unlock()
	return once()
}
