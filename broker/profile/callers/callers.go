// SPDX-License-Identifier: Apache-2.0

// Package callers has who may use a profile: lists of containers, users and groups.
//
// A profile file has a [Lists]. [Lists.Check] finds what is wrong with it, and [Lists.Policy] makes
// the [Policy] of lists without problems. A policy never changes and is safe for concurrent use.
package callers

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/pattern"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// Lists restricts who may use a profile. An absent list does not restrict.
type Lists struct {
	Containers []string `yaml:"Containers,omitempty"`
	UIDs       []int64  `yaml:"UIDs,omitempty"`
	GIDs       []int64  `yaml:"GIDs,omitempty"`
}

// maxUserID is the largest user or group id. To the kernel, the next number means no id.
const maxUserID = math.MaxUint32 - 1

// Check adds what is wrong with the lists to a report. It refuses a restriction without lists,
// because its author may mean that nobody may use the profile, while it would restrict nobody.
func (c *Lists) Check(r *yamlfile.Report, at yamlfile.Place) {
	if c == nil {
		return
	}
	if !r.AnyPresent(at, "Containers", "UIDs", "GIDs") && len(c.Containers)+len(c.UIDs)+len(c.GIDs) == 0 {
		r.Add(at, at, "restricts nothing, expected at least one of %s; leave the field out to allow every caller", yamlfile.List([]string{"Containers", "UIDs", "GIDs"}))
	}
	containers := at.Field("Containers")
	notEmpty(r, containers, len(c.Containers))
	for i, name := range c.Containers {
		if where := containers.Index(i); !IsContainerName(name) {
			r.Add(where, containers, "found %s, expected the name of a container: at most 63 lower-case letters, digits and inner hyphens", yamlfile.Excerpt(name))
		}
	}
	checkIDs(r, at.Field("UIDs"), "user", c.UIDs)
	checkIDs(r, at.Field("GIDs"), "group", c.GIDs)
}

func checkIDs(r *yamlfile.Report, at yamlfile.Place, kind string, ids []int64) {
	notEmpty(r, at, len(ids))
	for i, id := range ids {
		if id < 0 || id > maxUserID {
			r.Add(at.Index(i), at, "found %d, expected a %s id from 0 to %d", id, kind, int64(maxUserID))
		}
	}
}

func notEmpty(r *yamlfile.Report, at yamlfile.Place, length int) {
	if length == 0 && r.Present(at) {
		r.Add(at, at, "the list is empty, expected at least one value; leave the field out to allow every caller")
	}
}

// Caller identifies the caller of a call. The socket identifies the container, and the kernel
// reports the credentials of the process that connected.
type Caller struct {
	// Container is the name of the container. It is empty if the broker has one socket for
	// all callers.
	Container string
	// UID and GID are the effective ids of the process that connected. They are valid only
	// if Known is true.
	UID, GID uint32
	// Known reports whether UID and GID are known. Only Linux reports them.
	Known bool
}

// Policy restricts who may use a profile. The caller has to be in each list that the
// profile has.
type Policy struct {
	containers map[string]struct{}
	uids, gids map[uint32]struct{}
}

// NamesContainers reports whether the policy has a list of containers.
func (p *Policy) NamesContainers() bool { return p != nil && p.containers != nil }

// Allows reports whether the caller may use the profile. An unknown container, user or group
// is in no list. A nil policy allows all.
func (p *Policy) Allows(c Caller) bool {
	if p == nil {
		return true
	}
	if p.containers != nil {
		if _, ok := p.containers[c.Container]; !ok {
			return false
		}
	}
	return p.allowsID(p.uids, c.UID, c.Known) && p.allowsID(p.gids, c.GID, c.Known)
}

func (p *Policy) allowsID(allowed map[uint32]struct{}, id uint32, known bool) bool {
	if allowed == nil {
		return true
	}
	_, ok := allowed[id]
	return ok && known
}

// Policy returns the policy of lists without problems. It is nil for nil lists, which restrict
// nobody.
func (c *Lists) Policy() *Policy {
	if c == nil {
		return nil
	}
	p := &Policy{uids: idSet(c.UIDs), gids: idSet(c.GIDs)}
	if len(c.Containers) > 0 {
		p.containers = make(map[string]struct{}, len(c.Containers))
		for _, name := range c.Containers {
			p.containers[name] = struct{}{}
		}
	}
	return p
}

func idSet(ids []int64) map[uint32]struct{} {
	if len(ids) == 0 {
		return nil
	}
	set := make(map[uint32]struct{}, len(ids))
	for _, id := range ids {
		set[uint32(id)] = struct{}{} // Check has checked the range
	}
	return set
}

// IsContainerName reports whether Kubernetes allows a text as the name of a container: at
// most 63 lower-case letters, digits and inner hyphens.
func IsContainerName(s string) bool { return pattern.IsDNSLabel(s) }

// Lost returns the callers that this policy allows and the policy after does not, as phrases such
// as "the container app".
func (p *Policy) Lost(after *Policy) (lost []string) {
	if after == nil {
		return nil
	}
	if p == nil {
		p = &Policy{}
	}
	for _, list := range []struct {
		what          string
		before, after []string
		all, limited  bool
	}{
		{"container", slices.Sorted(maps.Keys(p.containers)), slices.Sorted(maps.Keys(after.containers)), p.containers == nil, after.containers != nil},
		{"user", numbers(p.uids), numbers(after.uids), p.uids == nil, after.uids != nil},
		{"group", numbers(p.gids), numbers(after.gids), p.gids == nil, after.gids != nil},
	} {
		switch {
		case !list.limited:
		case list.all:
			lost = append(lost, fmt.Sprintf("callers other than the %ss %s", list.what, strings.Join(list.after, ", ")))
		default:
			for _, name := range list.before {
				if !slices.Contains(list.after, name) {
					lost = append(lost, "the "+list.what+" "+name)
				}
			}
		}
	}
	return lost
}

func numbers(ids map[uint32]struct{}) (texts []string) {
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		texts = append(texts, fmt.Sprint(id))
	}
	return texts
}
