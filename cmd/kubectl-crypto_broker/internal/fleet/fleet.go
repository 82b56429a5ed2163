// SPDX-License-Identifier: Apache-2.0

// Package fleet follows the profiles, pods and rollouts of a cluster with the rights of the user,
// and sums them up for a page: what is served, how far changes have come, which brokers need
// attention and how to mend them, and which cryptography is in use.
package fleet

import (
	"time"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/inventory"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/rollouts"
)

// The maximum numbers of rows in the lists of a [Fleet]. The worst come first, and More is the
// number of the others.
const (
	maxProfiles = 200
	maxRollouts = 50
	maxProblems = 100
	maxUses     = 100
	maxServing  = 3
	maxText     = 500 // of a message, in characters
)

// Fleet is the content of the page.
type Fleet struct {
	Made time.Time `json:"made"`
	// Scope says which namespaces are shown.
	Scope string `json:"scope"`
	// Notices say what cannot be read, and why.
	Notices  []string      `json:"notices"`
	Counts   Counts        `json:"counts"`
	Profiles List[Profile] `json:"profiles"`
	Rollouts List[Rollout] `json:"rollouts"`
	Problems List[Problem] `json:"problems"`
	// Surveyed reports whether pods have been looked at.
	Surveyed bool    `json:"surveyed"`
	Posture  Posture `json:"posture"`
}

// List is the beginning of a list.
type List[T any] struct {
	Rows []T `json:"rows"`
	// More is the number of rows that are left out.
	More int `json:"more"`
}

// first returns a list of the first rows.
func first[T any](all []T, limit int) List[T] {
	if len(all) <= limit {
		return List[T]{Rows: append([]T{}, all...)}
	}
	return List[T]{Rows: all[:limit], More: len(all) - limit}
}

// Counts are numbers of the whole fleet.
type Counts struct {
	Namespaces  int `json:"namespaces"`
	Pods        int `json:"pods"`
	Missing     int `json:"missing"`
	Outdated    int `json:"outdated"`
	Troubled    int `json:"troubled"`
	Profiles    int `json:"profiles"`
	NotServed   int `json:"notServed"`
	Propagating int `json:"propagating"`
}

// Tone says whether a state is good or bad.
type Tone string

// The tones.
const (
	Good Tone = "good" // everything is as it should be
	Busy Tone = "busy" // the state will change by itself
	Warn Tone = "warn" // somebody should look at it
	Bad  Tone = "bad"  // the object does not work
)

// Profile is an object that describes a profile.
type Profile struct {
	// Object is the object as kubectl names it: cprof/orders, ccprof/baseline.
	Object    string `json:"object"`
	Namespace string `json:"namespace,omitempty"`
	// Name is the name that applications use.
	Name  string `json:"name"`
	State string `json:"state"`
	Tone  Tone   `json:"tone"`
	Why   string `json:"why,omitempty"`
	// Strength is in bits; nil if it is not known. Weakest says what limits it.
	Strength *int32 `json:"strength"`
	Weakest  string `json:"weakest,omitempty"`
	// FIPS is Approved, Partly or NotApproved; empty if it is not known.
	FIPS       string `json:"fips,omitempty"`
	Deprecated string `json:"deprecated,omitempty"`
	// Pods, Updated and Unverified are as the operator has counted them.
	Pods       int32 `json:"pods"`
	Updated    int32 `json:"updated"`
	Unverified int32 `json:"unverified"`
	// Serving are the workloads, or for a profile of the cluster the namespaces, with the most pods.
	Serving List[Serving] `json:"serving"`
}

// Serving is a workload or a namespace with pods whose brokers have the profile.
type Serving struct {
	Where string `json:"where"`
	Pods  int    `json:"pods"`
}

// Rollout is a change of a profile that reaches some brokers first.
type Rollout struct {
	Object    string `json:"object"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Phase     string `json:"phase"`
	Tone      Tone   `json:"tone"`
	Attempt   string `json:"attempt"`
	Step      int32  `json:"step"`
	Steps     int    `json:"steps"`
	Weight    int32  `json:"weight"`
	NewPods   int32  `json:"newPods"`
	OldPods   int32  `json:"oldPods"`
	Message   string `json:"message,omitempty"`
	// Choices are the actions on the rollout that a user can request. There are none if the
	// rollout is over.
	Choices []Choice `json:"choices"`
}

// Choice is an action on a rollout.
type Choice struct {
	Action rollouts.Action `json:"action"`
	// Barred says why the user cannot request it. It is empty if the user can.
	Barred string `json:"barred,omitempty"`
}

// Problem are pods of one workload whose brokers need attention for the same reason.
type Problem struct {
	Namespace string `json:"namespace"`
	// Workload is kind/name, or pod/name for a pod without an owner.
	Workload string `json:"workload"`
	Problem  string `json:"problem"`
	Tone     Tone   `json:"tone"`
	Pods     int    `json:"pods"`
	// Example is one of the pods.
	Example string `json:"example"`
	Why     string `json:"why,omitempty"`
	// Command is a command that solves the problem, or advice.
	Command string `json:"command"`
}

// Posture describes the strength of the cryptography in profiles and in use.
type Posture struct {
	Strength []Count `json:"strength"`
	FIPS     []Count `json:"fips"`
	// Deprecated are deprecated profiles, with who still uses them.
	Deprecated List[Deprecated] `json:"deprecated"`
	// Asked is the time at which brokers were last asked what calls used, or nil.
	Asked *time.Time `json:"asked"`
	// Brokers is the number of brokers, and Answered is the number of brokers that have answered.
	Brokers  int `json:"brokers"`
	Answered int `json:"answered"`
	// Failed says why the brokers could not be asked.
	Failed string    `json:"failed,omitempty"`
	Uses   List[Use] `json:"uses"`
	// PostQuantum, Classified and Plans count calls.
	PostQuantum []Count `json:"postQuantum"`
}

// Count is a number with its label.
type Count struct {
	What  string `json:"what"`
	Tone  Tone   `json:"tone"`
	Count uint64 `json:"count"`
}

// Deprecated is a deprecated profile.
type Deprecated struct {
	Object    string `json:"object"`
	Namespace string `json:"namespace,omitempty"`
	Says      string `json:"says"`
	// UsedBy are workloads whose calls used it since their brokers have started.
	UsedBy List[string] `json:"usedBy"`
}

// Use is a use of cryptography by calls in the fleet.
type Use struct {
	Used      string `json:"used"`
	Workloads int    `json:"workloads"`
	Example   string `json:"example"`
	Calls     uint64 `json:"calls"`
	NIST      string `json:"nist"`
	inventory.Verdict
}

// cut shortens a text to the length of a cell.
func cut(text string) string {
	runes := []rune(text)
	if len(runes) <= maxText {
		return text
	}
	return string(runes[:maxText]) + "…"
}
