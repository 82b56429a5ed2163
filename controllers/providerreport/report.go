// SPDX-License-Identifier: Apache-2.0

package providerreport

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// MaxSize is the size in bytes up to which a document is read. Each provider takes about 400.
const MaxSize = 16 << 20

// MaxDetail is the longest detail in bytes.
const MaxDetail = 1024

// Report is the report of one gateway.
type Report struct {
	// Providers are in the order of their UIDs, each once.
	Providers []Provider `json:"providers"`
}

// Provider is a KeyProvider or ClusterKeyProvider in one gateway, or a KeyAccessPolicy or
// KeyAccessPeer in one key access service.
type Provider struct {
	// UID is the UID of the resource, and Generation is the generation of the spec in the
	// gateway.
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	// Problem is the reason why the provider is closed, one of the words below. It is empty if
	// the provider is open.
	Problem string `json:"problem,omitempty"`
	// Detail continues the problems Invalid and InvalidCredentials. It has no credentials.
	Detail string `json:"detail,omitempty"`
	// SecretVersion is the resource version of the Secret as it was read last.
	SecretVersion string `json:"secretVersion,omitempty"`
	// Endpoints are in the order of the spec. It is empty for a provider that is closed.
	Endpoints []Endpoint `json:"endpoints,omitempty"`
}

// The problems of a provider.
const (
	// Opening is for a provider whose Secret is being read.
	Opening = "Opening"
	// Invalid is for a configuration that no provider can be opened with.
	Invalid = "Invalid"
	// InvalidCredentials is for a Secret that no provider can be opened with.
	InvalidCredentials = "InvalidCredentials"
	// SecretNotFound is for a Secret that does not exist.
	SecretNotFound = "SecretNotFound"
	// SecretForbidden is for a Secret that the gateway may not read.
	SecretForbidden = "SecretForbidden"
	// SecretUnreadable is for a Secret that was not read yet because the API server did not
	// answer.
	SecretUnreadable = "SecretUnreadable"
	// HeldBack is for a policy or a peer of a key access service that has no effect because
	// another one is wrong.
	HeldBack = "HeldBack"
)

// Endpoint is the state of an endpoint of a provider.
type Endpoint struct {
	// Reached reports whether the server answered at the last contact. It is null before the
	// first contact.
	Reached *bool `json:"reached"`
	// Failure is one of the failures of package pool, such as "TimedOut". It is empty if the
	// server answered.
	Failure string `json:"failure,omitempty"`
	// Paused reports whether the endpoint gets no requests because it failed.
	Paused bool `json:"paused,omitempty"`
	// Version is the version that the server reports.
	Version string `json:"version,omitempty"`
	// Latency is rounded by [RoundLatency]; 0 if it is not known.
	Latency time.Duration `json:"latency,omitempty"`
	// Connections is the number of open connections.
	Connections int32 `json:"connections"`
}

// RoundLatency rounds a duration up to 1, 2 or 5 times a power of ten milliseconds, so that a
// report changes only if a latency changes by much.
func RoundLatency(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	for power := time.Millisecond; power < 24*time.Hour; power *= 10 {
		for _, rounded := range []time.Duration{power, 2 * power, 5 * power} {
			if d <= rounded {
				return rounded
			}
		}
	}
	return 24 * time.Hour
}

var (
	wordPattern    = regexp.MustCompile(`^[A-Za-z]{0,64}$`)
	tokenPattern   = regexp.MustCompile(`^[!-~ ]{0,64}$`)
	uidPattern     = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)
	errUnreadable  = errors.New("the gateway's answer is not the expected JSON")
	errOtherValues = errors.New("the gateway's answer has values that no gateway writes")
)

// maxEndpoints is the largest number of endpoints of a provider.
const maxEndpoints = 16

// Parse reads a document and checks its form. Its errors quote nothing of the document.
func Parse(data []byte) (*Report, error) {
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, errUnreadable
	}
	for i := range r.Providers {
		p := &r.Providers[i]
		if !uidPattern.MatchString(string(p.UID)) || p.Generation < 0 || !wordPattern.MatchString(p.Problem) || len(p.Detail) > MaxDetail+3 ||
			!tokenPattern.MatchString(p.SecretVersion) {
			return nil, errOtherValues
		}
		if len(p.Endpoints) > maxEndpoints {
			return nil, fmt.Errorf("the gateway's answer has a provider with %d endpoints, expected at most %d", len(p.Endpoints), maxEndpoints)
		}
		for _, e := range p.Endpoints {
			if !wordPattern.MatchString(e.Failure) || !tokenPattern.MatchString(e.Version) || e.Latency < 0 || e.Connections < 0 {
				return nil, errOtherValues
			}
		}
	}
	return &r, nil
}
