// SPDX-License-Identifier: Apache-2.0

package podauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/service"
)

// Audience is the usual audience of the tokens that a gateway accepts.
const Audience = contract.KeyGatewayAudience

const (
	// remembered is how long a valid token is not reviewed again. A pod that is deleted may use
	// keys for as long.
	remembered = time.Minute
	// maxTokens is the maximum number of valid tokens that are remembered.
	maxTokens = 16384
	// maxReviews is the maximum number of tokens that the API server reviews for the gateway at
	// one time.
	maxReviews = 32
)

// tokens authenticates tokens.
type tokens struct {
	kubernetes kubernetes.Interface
	options    Options
	reviewing  *semaphore.Weighted

	mu    sync.Mutex
	known map[[sha256.Size]byte]bearer
}

type bearer struct {
	pod   service.Pod
	place place
	until time.Time
}

func newTokens(k kubernetes.Interface, o Options) *tokens {
	return &tokens{kubernetes: k, options: o, reviewing: semaphore.NewWeighted(maxReviews), known: map[[sha256.Size]byte]bearer{}}
}

// pod returns the pod that a token is bound to. The token has to come from an address of the pod.
func (t *tokens) pod(ctx context.Context, token string, from netip.Addr) (service.Pod, error) {
	// Refuse most invalid tokens without a request to the API server.
	expires, err := claimsOf(token, t.options.Audience, time.Now())
	if err != nil {
		return service.Pod{}, err
	}
	sum := sha256.Sum256([]byte(token))
	t.mu.Lock()
	found, ok := t.known[sum]
	t.mu.Unlock()
	if ok && time.Now().Before(found.until) && found.place.has(from) {
		return found.pod, nil // a pod gets a new address after a restart of its node, so it is read again
	}
	if err := t.reviewing.Acquire(ctx, 1); err != nil {
		return service.Pod{}, err
	}
	defer t.reviewing.Release(1)
	began := time.Now()
	pod, err := t.review(ctx, token)
	if err != nil {
		return service.Pod{}, err
	}
	place, err := t.placeOf(ctx, pod)
	if err != nil {
		return service.Pod{}, err
	}
	if !place.has(from) {
		return service.Pod{}, fmt.Errorf("%w: it belongs to the pod %s/%s, which has the addresses %v", service.ErrToken, pod.Namespace, pod.Name, place.addresses)
	}
	until := began.Add(remembered)
	if expires.Before(until) {
		until = expires
	}
	t.remember(sum, bearer{pod, place, until})
	return pod, nil
}

// review asks the API server, which knows whether the pod still exists.
func (t *tokens) review(ctx context.Context, token string) (service.Pod, error) {
	review, err := t.kubernetes.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{t.options.Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return service.Pod{}, fmt.Errorf("review a token: %w", err)
	}
	status := review.Status
	switch {
	case !status.Authenticated:
		return service.Pod{}, fmt.Errorf("%w: the API server does not know it", service.ErrToken)
	case !slices.Contains(status.Audiences, t.options.Audience):
		return service.Pod{}, fmt.Errorf("%w: the API server did not check its audience", service.ErrToken)
	}
	account, ok := strings.CutPrefix(status.User.Username, "system:serviceaccount:")
	namespace, name, both := strings.Cut(account, ":")
	pod := service.Pod{Namespace: namespace, ServiceAccount: name, Name: extra(status.User, "pod-name"), UID: extra(status.User, "pod-uid")}
	if !ok || !both || pod.Name == "" || pod.UID == "" {
		return service.Pod{}, fmt.Errorf("%w: it is not bound to a pod", service.ErrToken)
	}
	return pod, nil
}

func extra(user authenticationv1.UserInfo, key string) string {
	if values := user.Extra["authentication.kubernetes.io/"+key]; len(values) == 1 {
		return values[0]
	}
	return ""
}

func (t *tokens) remember(sum [sha256.Size]byte, b bearer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.known[sum]; !known && len(t.known) >= maxTokens {
		now := time.Now()
		for other, o := range t.known {
			if now.After(o.until) {
				delete(t.known, other)
			}
		}
		for other := range t.known {
			if len(t.known) < maxTokens {
				break
			}
			delete(t.known, other)
		}
	}
	t.known[sum] = b
}

// claimsOf returns the time at which a token expires. It refuses a token that is expired or not
// for the audience. It does not verify the signature, which the API server does.
func claimsOf(token, audience string, now time.Time) (expires time.Time, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, fmt.Errorf("%w: it is not a JSON web token", service.ErrToken)
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: its claims cannot be read", service.ErrToken)
	}
	var claims struct {
		Audiences []string `json:"aud"`
		Expires   int64    `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return time.Time{}, fmt.Errorf("%w: its claims cannot be read", service.ErrToken)
	}
	expires = time.Unix(claims.Expires, 0)
	switch {
	case !slices.Contains(claims.Audiences, audience):
		return time.Time{}, fmt.Errorf("%w: it is for another audience", service.ErrToken)
	case !now.Before(expires):
		return time.Time{}, fmt.Errorf("%w: it has expired", service.ErrToken)
	}
	return expires, nil
}
