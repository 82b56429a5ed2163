// SPDX-License-Identifier: Apache-2.0

package providersource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// entry is one KeyProvider or ClusterKeyProvider, with the provider that was opened for it.
type entry struct {
	source *Source
	key    types.NamespacedName
	// selector selects the namespaces of a ClusterKeyProvider. The mutex of the source guards
	// it.
	selector labels.Selector
	// now is the state that calls use.
	now atomic.Pointer[state]

	mu      sync.Mutex
	version version
	spec    *v1alpha1.KeyProviderSpec
	closed  bool
	// stop ends following the Secret. It is nil if there is none.
	stop context.CancelFunc
	// secret is the state of the Secret, or nil if it is not known.
	secret *secret
	// config and credentials belong to the open provider.
	config      *providers.Config
	credentials providers.Credentials
}

// version identifies the version of the resource from which something was made.
type version struct {
	uid        types.UID
	generation int64
}

// state has the data of an entry for calls and for reports. It does not change.
type state struct {
	version version
	spec    *v1alpha1.KeyProviderSpec
	// provider is nil if there is a problem, which is a sentence without a full stop. reason is
	// its word in package providerreport. While another Secret is read, there is a reason although
	// the provider serves.
	provider        providers.Provider
	problem, reason string
	// detail is the problem of a configuration or its credentials, without the name of the
	// provider.
	detail string
	// secretVersion is the resource version of the Secret.
	secretVersion string
}

func newEntry(s *Source, key types.NamespacedName) *entry {
	e := &entry{source: s, key: key}
	e.now.Store(&state{spec: &v1alpha1.KeyProviderSpec{}, problem: "it was not opened yet", reason: providerreport.Opening})
	return e
}

// update opens or replaces the provider if the spec has changed. If the spec names another
// Secret, the old provider serves until that Secret has been read.
func (e *entry) update(ctx context.Context, of version, spec *v1alpha1.KeyProviderSpec) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.version = of
	if e.spec != nil && reflect.DeepEqual(e.spec, spec) {
		now := *e.now.Load()
		now.version = of
		e.now.Store(&now)
		return
	}
	sameSecret := e.spec != nil && reflect.DeepEqual(e.spec.Credentials, spec.Credentials)
	e.spec = spec.DeepCopy()
	if !sameSecret {
		e.follow(ctx)
	}
	e.open()
}

// follow begins to follow the Secret of the spec, and no other.
func (e *entry) follow(ctx context.Context) {
	if e.stop != nil {
		e.stop()
		e.stop, e.secret = nil, nil
	}
	if e.spec.Credentials == nil {
		e.secret = &secret{}
		return
	}
	namespace := e.key.Namespace
	if namespace == "" {
		namespace = e.source.options.OperatorNamespace
	}
	following, stop := context.WithCancel(ctx)
	e.stop = stop
	f := &follower{secrets: e.source.options.Secrets.Secrets(namespace), namespace: namespace, name: e.spec.Credentials.SecretRef.Name}
	go f.run(following, func(found *secret) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if following.Err() == nil && !e.closed {
			e.secret = found
			e.open()
		}
	})
}

// open opens the provider that the spec and the Secret describe, and sets now.
func (e *entry) open() {
	before := e.now.Load()
	next := &state{version: e.version, spec: e.spec, problem: before.problem}
	if e.secret != nil {
		next.secretVersion = e.secret.version
	}
	var problem, reason string
	config, problems := render.KeyProvider(e.key.Name, e.spec)
	if config != nil {
		config.ActsAsProgram = e.key.Namespace == "" // a KeyProvider must not lend its namespace the identity of the gateway
	}
	switch {
	case len(problems) > 0:
		problem, reason = render.Sentence(problems), providerreport.Invalid
	case e.key.Namespace != "" && render.ActsAsGateway(e.spec):
		problem, reason = "it would act as the key gateway itself, which only a ClusterKeyProvider may", providerreport.Invalid
	case e.secret == nil:
		// The Secret is being read. Until then, the old provider serves.
		next.provider, next.reason = before.provider, providerreport.Opening
		e.now.Store(next)
		return
	case e.secret.problem != "":
		problem, reason = e.secret.problem, e.secret.reason
	case before.provider != nil && reflect.DeepEqual(e.config, config) && reflect.DeepEqual(e.credentials, e.secret.credentials):
		next.provider = before.provider
		e.now.Store(next)
		return
	default:
		provider, err := e.source.options.Types.Open(config, e.secret.credentials)
		if err != nil {
			problem, reason = err.Error(), providerreport.Invalid
			if bad := (*providers.CredentialsError)(nil); errors.As(err, &bad) {
				reason = providerreport.InvalidCredentials
			}
			break
		}
		next.provider, next.problem = provider, ""
		e.config, e.credentials = config, e.secret.credentials
		e.log(slog.LevelInfo, "opened a key provider", slog.String("type", config.Type), slog.Any("endpoints", config.Endpoints))
	}
	if problem != "" {
		next.problem, next.reason = problem, reason
		if reason == providerreport.Invalid || reason == providerreport.InvalidCredentials {
			next.detail = strings.TrimPrefix(problem, fmt.Sprintf("key provider %q: ", e.key.Name))
		}
		if problem != before.problem || before.provider != nil {
			e.log(slog.LevelWarn, "a key provider cannot be used", slog.String("reason", problem))
		}
	}
	e.replace(next)
}

// replace sets another state for calls, and closes the provider of the state before.
func (e *entry) replace(next *state) {
	before := e.now.Swap(next)
	if before.provider != nil && before.provider != next.provider {
		e.source.drain(before.provider)
	}
	if next.provider == nil {
		e.config, e.credentials = nil, nil
	}
}

// close closes the provider permanently.
func (e *entry) close(reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.stop != nil {
		e.stop()
	}
	e.secret = nil
	e.replace(&state{spec: e.now.Load().spec, problem: reason})
	e.log(slog.LevelInfo, "closed a key provider", slog.String("reason", reason))
}

func (e *entry) log(level slog.Level, message string, about ...slog.Attr) {
	kind := "KeyProvider"
	if e.key.Namespace == "" {
		kind = "ClusterKeyProvider"
	}
	about = append([]slog.Attr{slog.String("kind", kind), slog.String("namespace", e.key.Namespace), slog.String("name", e.key.Name)}, about...)
	e.source.options.Logger.LogAttrs(context.Background(), level, message, about...)
}
