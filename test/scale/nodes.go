// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// The time from the annotation of a pod until its broker serves the set, a median of 0.65 s. Without the annotation a kubelet takes
// resync.
const (
	leastDelay  = 200 * time.Millisecond
	delaySpread = 900 * time.Millisecond
	resync      = time.Minute
)

// set is the content of a ConfigMap.
type set struct {
	digest   string
	revision int64
}

// nodes plays the kubelets and the brokers of all pods. A broker gets the set of its
// namespace a moment after its pod was annotated, or a minute after the set was written.
type nodes struct {
	polls  atomic.Int64
	server *http.Server

	mu sync.Mutex
	// sets are by namespace, brokers by namespace and name of the pod.
	sets    map[string]set
	brokers map[string]map[string]*broker
	// byAddress are the brokers by the addresses of their pods.
	byAddress map[netip.Addr]*broker
	// behind is the number of brokers that serve another set than their namespace has.
	behind int
	// adopted is when a broker got another set last.
	adopted time.Time
}

// broker is the status port of a broker.
type broker struct {
	namespace  string
	annotation string
	serves     set
	// answer is what the status port says, nil while the broker does not run.
	answer atomic.Pointer[[]byte]
}

func newNodes() *nodes {
	n := &nodes{sets: map[string]set{}, brokers: map[string]map[string]*broker{}, byAddress: map[netip.Addr]*broker{}}
	n.server = &http.Server{Handler: http.HandlerFunc(n.serve), ReadHeaderTimeout: time.Minute}
	return n
}

// listen serves the status ports of all pods at once.
func (n *nodes) listen(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("0.0.0.0", strconv.Itoa(contract.DefaultStatusPort)))
	if err != nil {
		return err
	}
	go func() {
		if err := n.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			runner.Progress("the status ports of the brokers ended: %v", err)
		}
	}()
	return nil
}

func (n *nodes) stop() error { return n.server.Close() }

// serve answers as the broker of the pod whose address was asked.
func (n *nodes) serve(w http.ResponseWriter, r *http.Request) {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || r.URL.Path != contract.ProfilesPath {
		http.NotFound(w, r)
		return
	}
	n.polls.Add(1)
	n.mu.Lock()
	b := n.byAddress[local.AddrPort().Addr().Unmap()]
	n.mu.Unlock()
	if b == nil || b.answer.Load() == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(*b.answer.Load()) // a client that went away needs no answer
}

// run starts the broker of a pod with the set that its namespace has.
func (n *nodes) run(namespace, pod string, address netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := &broker{namespace: namespace}
	if n.brokers[namespace] == nil {
		n.brokers[namespace] = map[string]*broker{}
	}
	n.brokers[namespace][pod] = b
	n.byAddress[address] = b
	if b.serves != n.sets[namespace] {
		n.behind++
	}
	n.adopt(b)
}

// adopt lets a broker serve the set of its namespace. The caller holds n.mu.
func (n *nodes) adopt(b *broker) {
	now := n.sets[b.namespace]
	if b.serves == now {
		return
	}
	b.serves = now
	n.behind--
	n.adopted = time.Now()
	answer, err := json.Marshal(map[string]any{"digest": now.digest, "revision": now.revision, "since": n.adopted.UTC(), "reason": directory.Loaded})
	if err != nil {
		panic(err) // texts and numbers
	}
	b.answer.Store(&answer)
}

// changed records the set of a ConfigMap.
func (n *nodes) changed(namespace string, now set) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.sets[namespace]
	if before == now {
		return
	}
	n.sets[namespace] = now
	for _, b := range n.brokers[namespace] {
		if b.serves == before {
			n.behind++
		}
	}
	time.AfterFunc(resync, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.sets[namespace] != now {
			return
		}
		for _, b := range n.brokers[namespace] {
			n.adopt(b)
		}
	})
}

// annotated records the annotation of a pod that wakes its kubelet.
func (n *nodes) annotated(namespace, pod, value string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.brokers[namespace][pod]
	if b == nil || value == b.annotation {
		return
	}
	b.annotation = value
	time.AfterFunc(leastDelay+rand.N(delaySpread), func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.adopt(b)
	})
}

// haveSets returns how many namespaces of this program have a set.
func (n *nodes) haveSets() (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for namespace := range n.sets {
		if strings.HasPrefix(namespace, namespacePrefix) || strings.HasPrefix(namespace, morePrefix) {
			count++
		}
	}
	return count
}

// served returns when the last broker got another set, and an error while brokers serve
// another one than their namespace has.
func (n *nodes) served() (adopted time.Time, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.behind != 0 {
		err = fmt.Errorf("%d brokers serve another set than their namespace has", n.behind)
	}
	return n.adopted, err
}
