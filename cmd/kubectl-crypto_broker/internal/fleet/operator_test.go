// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

func TestThePageSaysThatTheOperatorSeemsNotToRun(t *testing.T) {
	const (
		renewed   = "renewed"
		same      = "the same"
		gone      = "not there"
		forbidden = "forbidden"
	)
	// Each step is one check, 30 seconds after the previous one.
	for sentence, test := range map[string]struct {
		looks []string
		says  bool
	}{
		"the first look":                        {[]string{renewed}, false},
		"half a minute without renewal":         {[]string{renewed, same}, false},
		"a minute without renewal":              {[]string{renewed, same, same}, true},
		"a leader that is slow":                 {[]string{renewed, same, renewed, same}, false},
		"an operator that runs again":           {[]string{renewed, same, same, renewed}, false},
		"no Lease":                              {[]string{gone, gone, gone, gone}, false},
		"a Lease that may not be read":          {[]string{forbidden, forbidden, forbidden, forbidden}, false},
		"a Lease that could not be read lately": {[]string{renewed, same, forbidden, same, same}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			var now, version string
			client := fake.NewClientset()
			client.PrependReactor("get", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
				name, resource := action.(clienttesting.GetAction).GetName(), action.GetResource().GroupResource()
				switch now {
				case gone:
					return true, nil, apierrors.NewNotFound(resource, name)
				case forbidden:
					return true, nil, apierrors.NewForbidden(resource, name, errors.New("no"))
				case renewed:
					version += "1"
				}
				return true, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: action.GetNamespace(), Name: name, ResourceVersion: version}}, nil
			})
			seen := lease{client: client}
			clock := time.Now()
			var says string
			for _, now = range test.looks {
				says = seen.look(t.Context(), clock)
				clock = clock.Add(30 * time.Second)
			}
			if (says != "") != test.says || test.says && !strings.Contains(says, "nobody has renewed the Lease "+v1alpha1.LeaderElectionLease+" in namespace "+installation.DefaultNamespace) {
				t.Errorf("found %q", says)
			}
		})
	}
}

// An API server that accepts a request and never answers looks like a network that loses packets.
func TestAnAPIServerThatHangsDoesNotStopThePage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the context of a request ends with its connection only if the body has been read
		<-r.Context().Done()
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	profiles := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for _, name := range []string{"one", "two"} {
		p := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		p.Status.Rollout = &v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutPaused}
		if err := profiles.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	f := &Follower{
		Client: client, Context: "test", silent: "The operator seems not to run.",
		watches: &watches{namespaced: []cache.Store{profiles}, cluster: cache.NewStore(cache.MetaNamespaceKeyFunc)},
		rights:  rights{client: client, wait: 10 * time.Millisecond, known: map[downgrade.Source]answer{}},
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	now := f.fleet(ctx)
	if ctx.Err() != nil {
		t.Fatal("the page waits for the API server")
	}
	if len(now.Rollouts.Rows) != 2 {
		t.Fatalf("found %+v", now.Rollouts)
	}
	for _, r := range now.Rollouts.Rows {
		for _, c := range r.Choices {
			if !strings.HasPrefix(c.Barred, "Whether you have the right to patch it is not known: ") {
				t.Errorf("%s of %s: %q", c.Action, r.Name, c.Barred)
			}
		}
	}
	if now.Scope != "all namespaces of context test" || len(now.Notices) != 1 || now.Notices[0] != f.silent {
		t.Errorf("found %q, %q", now.Scope, now.Notices)
	}
}
