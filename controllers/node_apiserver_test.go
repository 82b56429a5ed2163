// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
)

// pod is a pod with a broker as a node would run it: it answers on its status
// port, and reads the namespace's ConfigMap when its annotation changes.
type pod struct {
	t      *testing.T
	object *corev1.Pod

	mu sync.Mutex
	// answer is the broker's answer.
	answer confirm.Answer
	// values are the annotations seen so far.
	values []string
	// ignoring is the number of annotations that the broker ignores.
	ignoring int
	// silent reports whether the broker answers no requests.
	silent bool
	// partial reports whether it leaves out profiles of each set.
	partial bool
	asked   int
	// trust has the demands on sets, nil if the broker accepts any set.
	trust *signed.Trust
	// failing reports whether all calls with a new profile fail.
	failing bool
	// old reports whether the image of the broker does not support rollouts.
	old bool
}

// runPod runs a pod until the test ends. It applies the given changes before the start.
func runPod(t *testing.T, namespace string, change ...func(*pod)) *pod {
	t.Helper()
	p := &pod{t: t, answer: confirm.Answer{Reason: string(directory.NoProfiles)}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	always := corev1.ContainerRestartPolicyAlways
	p.object = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "app-"},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{
				Name: contract.BrokerContainer, Image: "broker", RestartPolicy: &always,
				Args: []string{"--profiles-dir=/etc/crypto-broker/profiles", "--status-address=:" + address.Port()},
				Env:  []corev1.EnvVar{{Name: contract.InstanceVariable, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}}},
			}},
			Containers: []corev1.Container{{Name: "app", Image: "app"}},
		},
	}
	for _, change := range change {
		change(p)
	}
	create(t, p.object)
	p.load()
	p.follow()
	p.status(func(status *corev1.PodStatus) {
		started := true
		status.Phase = corev1.PodRunning
		status.PodIP, status.HostIP = "127.0.0.1", "127.0.0.2"
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
		status.HostIPs = []corev1.HostIP{{IP: status.HostIP}}
		status.InitContainerStatuses = []corev1.ContainerStatus{{
			Name: contract.BrokerContainer, ContainerID: "test://1", Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		}}
	})
	return p
}

// status changes the status as a kubelet would.
func (p *pod) status(change func(*corev1.PodStatus)) {
	p.t.Helper()
	before := p.object.DeepCopy()
	change(&p.object.Status)
	if err := apiServer.Status().Patch(p.t.Context(), p.object, client.StrategicMergeFrom(before)); err != nil {
		p.t.Fatal(err)
	}
}

// ServeHTTP answers as a broker's status port does.
func (p *pod) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if r.URL.Path != contract.ProfilesPath || p.silent {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if err := json.NewEncoder(w).Encode(p.answer); err != nil {
		p.t.Error(err)
	}
}

// load reads the ConfigMap as a mounted volume would show it.
func (p *pod) load() {
	var set corev1.ConfigMap
	err := apiServer.Get(context.Background(), client.ObjectKey{Namespace: p.object.Namespace, Name: v1alpha1.ProfilesConfigMap}, &set)
	if client.IgnoreNotFound(err) != nil {
		p.t.Error(err)
	}
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.old && strings.HasPrefix(set.Data[profile.FileName], "FormatVersion: 2\n") {
		p.answer.Reason = string(directory.SetRejected)
		return
	}
	answer := confirm.Answer{Digest: profile.Digest([]byte(set.Data[profile.FileName])), Since: time.Now(), Reason: string(directory.Loaded)}
	if p.partial {
		answer.Reason = string(directory.ProfilesRejected)
	}
	if p.trust != nil {
		trust := *p.trust
		trust.Lowest = p.answer.Revision
		statement, err := trust.Verify([]byte(set.Data[profile.FileName]), []byte(set.Data[signed.FileName]))
		if err != nil {
			p.answer.Reason = string(directory.SignatureRejected)
			if revision := (*signed.RevisionError)(nil); errors.As(err, &revision) {
				p.answer.Reason = string(directory.RevisionRejected)
			}
			return
		}
		answer.Revision = statement.Revision
	}
	if loaded, _ := profile.Compile(profile.FileName, []byte(set.Data[profile.FileName]), profile.Instance(string(p.object.UID))); loaded != nil {
		for i, side := range loaded.Rollouts() {
			answer.Rollouts[i] = confirm.Rollout{Profile: side.Profile, Digest: side.Digest, New: side.New, Refused: side.Refused, Calls: 100}
			if side.New && p.failing {
				answer.Rollouts[i].Failed = 100
			}
		}
	}
	p.answer = answer
}

// follow watches the pod's annotation until the test ends.
func (p *pod) follow() {
	ctx, cancel := context.WithCancel(context.Background())
	events, err := apiServer.Watch(ctx, &corev1.PodList{}, client.InNamespace(p.object.Namespace), client.MatchingFields{"metadata.name": p.object.Name})
	if err != nil {
		p.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		seen := ""
		for event := range events.ResultChan() {
			object, ok := event.Object.(*corev1.Pod)
			if !ok || object.Annotations[digestAnnotation] == seen {
				continue
			}
			seen = object.Annotations[digestAnnotation]
			p.mu.Lock()
			p.values = append(p.values, seen)
			act := len(p.values) > p.ignoring
			p.mu.Unlock()
			if act {
				p.load()
			}
		}
	}()
	p.t.Cleanup(func() {
		cancel()
		events.Stop()
		<-done
	})
}

// annotations returns the values seen so far.
func (p *pod) annotations() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.values...)
}

// serves returns the digest of the broker's answer.
func (p *pod) serves() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer.Digest
}

// ignoring makes the broker of a pod ignore this many annotations.
func ignoring(times int) func(*pod) { return func(p *pod) { p.ignoring = times } }

func silent(p *pod) { p.silent = true }

// expectServed waits until all pods serve the namespace's file.
func expectServed(t *testing.T, want string, pods ...*pod) {
	t.Helper()
	eventually(t, "all pods serve the set", func() error {
		for _, p := range pods {
			if found := p.serves(); found != profile.Digest([]byte(want)) {
				return fmt.Errorf("pod %s serves %s after annotations %q", p.object.Name, found, p.annotations())
			}
		}
		return nil
	})
}

func keyOf(p *pod) types.NamespacedName { return client.ObjectKeyFromObject(p.object) }
