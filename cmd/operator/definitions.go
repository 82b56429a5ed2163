// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

const (
	// definitionsPause is the time between two looks whether the resource definitions
	// are installed.
	definitionsPause = 2 * time.Second
	// definitionsTimeout bounds a look.
	definitionsTimeout = 10 * time.Second
	// probeTimeout bounds how long a probe may take to send its header meanwhile.
	probeTimeout = 2 * time.Second
)

// watched are the resources without which the operator cannot begin.
var watched = []string{"cryptoprofiles", "clustercryptoprofiles", "keyproviders", "clusterkeyproviders", "keyaccesspolicies", "keyaccesspeers"}

// awaitDefinitions returns nil once the API server has the definitions of all watched resources, or
// when ctx ends. A manager that begins without one of them ends with an error after two minutes. While a
// definition is missing, or the API server does not answer, it answers probes at the address, unless that
// is "0": the process lives and is not ready. A process that ended instead would begin again only
// after the pause of the kubelet, which grows to five minutes.
func awaitDefinitions(ctx context.Context, kubernetes *rest.Config, healthAddress string) error {
	client, err := discovery.NewDiscoveryClientForConfig(kubernetes)
	if err != nil {
		return fmt.Errorf("prepare to reach the cluster at %s: %w", kubernetes.Host, err)
	}
	why := obstacle(ctx, client)
	if why == "" {
		return nil
	}
	var answer atomic.Value
	answer.Store(why)
	stop, err := answerProbes(ctx, healthAddress, &answer)
	if err != nil {
		return err
	}
	defer stop()
	for said := ""; why != ""; why = obstacle(ctx, client) {
		if why != said {
			log.Log.Info(why)
			said = why
		}
		answer.Store(why)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(definitionsPause):
		}
	}
	log.Log.Info("the resource definitions are installed")
	return nil
}

// obstacle returns a sentence that says why the operator cannot begin yet, or "".
func obstacle(ctx context.Context, client *discovery.DiscoveryClient) string {
	missing, err := missingDefinitions(ctx, client)
	switch {
	case err != nil:
		return fmt.Sprintf("the API server does not tell its resource definitions, and the operator begins once it does: %v", err)
	case len(missing) > 0:
		return fmt.Sprintf("the resource definitions %s are not installed, and the operator begins once they are: set crds.install=true of the chart, or apply config/crd", strings.Join(missing, ", "))
	}
	return ""
}

// missingDefinitions returns the names of the resource definitions that the API server does not
// have. It needs only the right to discover the API, which everybody has.
func missingDefinitions(ctx context.Context, client *discovery.DiscoveryClient) ([]string, error) {
	// The request does not end with ctx, so that the end of the process does not look like an
	// error of the API server.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), definitionsTimeout)
	defer cancel()
	served, err := client.ServerResourcesForGroupVersionWithContext(ctx, v1alpha1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		served = &metav1.APIResourceList{}
	case err != nil:
		return nil, fmt.Errorf("ask the API server for the resource definitions of %s: %w", v1alpha1.GroupVersion, err)
	}
	var missing []string
	for _, name := range watched {
		if !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == name }) {
			missing = append(missing, name+"."+v1alpha1.GroupVersion.Group)
		}
	}
	return missing, nil
}

// answerProbes serves /healthz, and says at all other paths why the operator is not ready, until
// stop is called. why is a string.
func answerProbes(ctx context.Context, address string, why *atomic.Value) (stop func(), err error) {
	if address == "0" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve /healthz at %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, why.Load().(string), http.StatusServiceUnavailable)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: probeTimeout}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Log.Error(err, "the server of probes ended")
		}
	}()
	return func() {
		if err := server.Close(); err != nil {
			log.Log.Error(err, "closing the server of probes")
		}
	}, nil
}
