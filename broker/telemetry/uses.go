// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
)

// MaxUses is the maximum number of different uses that a broker counts, of all profiles together.
// It counts calls with further uses by profile and operation alone.
const MaxUses = 256

// useCount counts the calls of one use.
type useCount struct {
	calls atomic.Uint64
	// last is when the last call ended, in seconds since 1970.
	last atomic.Int64
}

// Used counts a served call that ended at this time. The counters may be nil.
func (c *Counters) Used(use *profile.Use, ended time.Time) {
	if c == nil || c.all == nil {
		return
	}
	var count *useCount
	if known := c.uses.Load(); known != nil {
		count = (*known)[*use]
	}
	if count == nil {
		if count = c.all.addUse(c, use); count == nil {
			c.otherUses[use.Operation].Add(1)
			return
		}
	}
	count.calls.Add(1)
	// Most calls end in the same second as the call before, and then write nothing.
	if now := ended.Unix(); count.last.Load() != now {
		count.last.Store(now)
	}
}

// addUse returns the count of a use that a profile did not have. It returns nil if the broker
// counts as many uses as it may, or if the profile is no longer in the set.
func (r *requests) addUse(c *Counters, use *profile.Use) *useCount {
	if r.uses.Load() >= MaxUses {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var known map[profile.Use]*useCount
	if before := c.uses.Load(); before != nil {
		known = *before
	}
	if count := known[*use]; count != nil { // another call was faster
		return count
	}
	if r.uses.Load() >= MaxUses || c.dropped {
		return nil
	}
	// Calls read the map without a lock, so the map never changes.
	next := make(map[profile.Use]*useCount, len(known)+1)
	maps.Copy(next, known)
	own, count := *use, &useCount{}
	for i := range own.Keys {
		own.Keys[i].ID = strings.Clone(own.Keys[i].ID) // so that the request is not kept
	}
	next[own] = count
	c.uses.Store(&next)
	r.uses.Add(1)
	return count
}

// usesVersion is the version of the answer to /uses. Fields that come later do not change it.
const usesVersion = 1

// Uses is the answer to /uses: the uses of the served calls, for the profiles of the set.
type Uses struct {
	// Version is usesVersion.
	Version int `json:"version"`
	// Since is when the broker began to count.
	Since time.Time `json:"since"`
	// Uses are at most MaxUses, sorted by profile and operation.
	Uses []CountedUse `json:"uses"`
	// Other are calls that are counted only by profile and operation, because there was no room
	// in Uses. If there are more than MaxUses, the last element has no profile and no operation,
	// and counts all further calls.
	Other []OtherUses `json:"other,omitempty"`
}

// CountedUse is a use with the number of its calls.
type CountedUse struct {
	Profile   string `json:"profile"`
	Operation string `json:"operation"`
	Algorithm string `json:"algorithm"`
	// Keys are the keys of the call, see [profile.Use].
	Keys []CountedKey `json:"keys,omitempty"`
	// Format is the format of a signature. GivenFormat reports whether the caller has asked for
	// it.
	Format      string `json:"format,omitempty"`
	GivenFormat bool   `json:"givenFormat,omitempty"`
	// GivenNonce reports whether the caller of EncryptData has given the nonce.
	GivenNonce bool `json:"givenNonce,omitempty"`
	// TagBits is the size of the tag of EncryptData and DecryptData.
	TagBits int `json:"tagBits,omitempty"`
	// SHA1Request reports whether the request for a certificate was signed with SHA-1.
	SHA1Request bool `json:"sha1Request,omitempty"`
	// GivenContext reports whether a data key is bound to a context.
	GivenContext bool `json:"givenContext,omitempty"`
	// Container is empty if all callers share a socket. UID and GID are nil if they are not
	// known.
	Container string  `json:"container,omitempty"`
	UID       *uint32 `json:"uid,omitempty"`
	GID       *uint32 `json:"gid,omitempty"`
	Calls     uint64  `json:"calls"`
	// Since is when the broker began to count calls for the profile: when it started, or when
	// the profile came into the set.
	Since time.Time `json:"since"`
	// Last is when the last call ended, in whole seconds.
	Last time.Time `json:"last"`
}

// CountedKey is a key of a use.
type CountedKey struct {
	Algorithm string `json:"algorithm"`
	Bits      int    `json:"bits,omitempty"`
	// ID is empty for a key that came with the request.
	ID string `json:"id,omitempty"`
}

// OtherUses are calls that are counted only by profile and operation.
type OtherUses struct {
	Profile   string `json:"profile"`
	Operation string `json:"operation"`
	Calls     uint64 `json:"calls"`
}

// Uses returns the uses of served calls.
func (m *Metrics) Uses() Uses {
	r := m.requests
	r.mu.Lock()
	current := r.current
	r.mu.Unlock()
	all := Uses{Version: usesVersion, Since: m.since.UTC(), Uses: []CountedUse{}}
	for _, name := range slices.Sorted(maps.Keys(current)) {
		c := current[name]
		if known := c.uses.Load(); known != nil {
			for use, count := range *known {
				if calls := count.calls.Load(); calls > 0 {
					counted := countedUse(use)
					counted.Profile, counted.Calls, counted.Since, counted.Last = name, calls, c.since.UTC(), time.Unix(count.last.Load(), 0).UTC()
					all.Uses = append(all.Uses, counted)
				}
			}
		}
		for op := range profile.OperationCount {
			calls := c.otherUses[op].Load()
			switch n := len(all.Other); {
			case calls == 0:
			case n > MaxUses:
				all.Other[n-1].Calls += calls
			case n == MaxUses:
				all.Other = append(all.Other, OtherUses{Calls: calls})
			default:
				all.Other = append(all.Other, OtherUses{name, profile.Operation(op).String(), calls})
			}
		}
	}
	slices.SortFunc(all.Uses, func(a, b CountedUse) int {
		return cmp.Or(cmp.Compare(a.Profile, b.Profile), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Algorithm, b.Algorithm),
			cmp.Compare(a.Container, b.Container), -cmp.Compare(a.Calls, b.Calls))
	})
	return all
}

// countedUse returns a use without the profile and the numbers.
func countedUse(use profile.Use) CountedUse {
	counted := CountedUse{
		Operation: use.Operation.String(), Algorithm: use.Algorithm, GivenFormat: use.GivenFormat, GivenNonce: use.GivenNonce,
		TagBits: 8 * int(use.TagSize), SHA1Request: use.SHA1Request, GivenContext: use.GivenContext, Container: use.Caller.Container,
	}
	if use.Operation.Row().HasFormat {
		counted.Format = use.Format.String()
	}
	for _, key := range use.Keys {
		if key != (profile.UsedKey{}) {
			counted.Keys = append(counted.Keys, CountedKey(key))
		}
	}
	if use.Caller.Known {
		counted.UID, counted.GID = &use.Caller.UID, &use.Caller.GID
	}
	return counted
}

// errUses means that an answer to /uses does not have the form of a broker's answer.
var errUses = errors.New("the answer is not the expected JSON")

// ReadUses reads an answer to /uses. An answer of another form is an error.
func ReadUses(body []byte) (Uses, error) {
	var all Uses
	if err := json.Unmarshal(body, &all); err != nil || all.Version < usesVersion || len(all.Uses) > MaxUses || len(all.Other) > MaxUses+1 {
		return Uses{}, errUses
	}
	return all, nil
}

// word matches the names that a broker counts. It matches no text with control characters.
var word = regexp.MustCompile(`^[!-~]{0,128}$`)

// Use returns the use that was counted. A use of another form is an error.
func (u *CountedUse) Use() (profile.Use, error) {
	operation, known := profile.FindOperation(u.Operation)
	format, written := profile.FindSignatureFormat(u.Format)
	use := profile.Use{
		Operation: operation, Algorithm: u.Algorithm, Format: format, GivenFormat: u.GivenFormat, GivenNonce: u.GivenNonce, TagSize: uint8(u.TagBits / 8),
		SHA1Request: u.SHA1Request, GivenContext: u.GivenContext, Caller: callers.Caller{Container: u.Container},
	}
	if !known || !written && u.Format != "" || u.TagBits < 0 || u.TagBits > 8*255 || len(u.Keys) > len(use.Keys) ||
		!profile.IsName(u.Profile) || !word.MatchString(u.Algorithm) || !word.MatchString(u.Container) {
		return profile.Use{}, errUses
	}
	for i, key := range u.Keys {
		if !word.MatchString(key.Algorithm) || !word.MatchString(key.ID) {
			return profile.Use{}, errUses
		}
		use.Keys[i] = profile.UsedKey(key)
	}
	if u.UID != nil && u.GID != nil {
		use.Caller.UID, use.Caller.GID, use.Caller.Known = *u.UID, *u.GID, true
	}
	return use, nil
}

// uses answers /uses.
func (s *Status) uses(w http.ResponseWriter, turn *sync.Mutex) {
	all := func() Uses {
		defer takeTurn(turn)()
		return s.Metrics.Uses()
	}()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err := json.NewEncoder(w).Encode(all); err != nil {
		s.Logger.Debug("the answer to /uses could not be written", "error", err)
	}
}
