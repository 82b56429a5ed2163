// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/pattern"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// Callers restricts who may use the profile. An absent list does not restrict.
type Callers struct {
	Containers []string `yaml:"Containers,omitempty"`
	UIDs       []int64  `yaml:"UIDs,omitempty"`
	GIDs       []int64  `yaml:"GIDs,omitempty"`
}

// maxUserID is the largest user or group id. To the kernel, the next number means no id.
const maxUserID = math.MaxUint32 - 1

// callers checks who may use a profile. It refuses a restriction without lists, because its
// author may mean that nobody may use the profile, while it would restrict nobody.
func (v validator) callers(at yamlfile.Place, c *Callers) {
	if c == nil {
		return
	}
	if !v.anyPresent(at, "Containers", "UIDs", "GIDs") && len(c.Containers)+len(c.UIDs)+len(c.GIDs) == 0 {
		v.Add(at, at, "restricts nothing, expected at least one of %s; leave the field out to allow every caller", yamlfile.List([]string{"Containers", "UIDs", "GIDs"}))
	}
	containers := at.Field("Containers")
	v.notEmpty(containers, len(c.Containers))
	for i, name := range c.Containers {
		if where := containers.Index(i); !IsContainerName(name) {
			v.Add(where, containers, "found %s, expected the name of a container: at most 63 lower-case letters, digits and inner hyphens", yamlfile.Excerpt(name))
		}
	}
	v.ids(at.Field("UIDs"), "user", c.UIDs)
	v.ids(at.Field("GIDs"), "group", c.GIDs)
}

func (v validator) ids(at yamlfile.Place, kind string, ids []int64) {
	v.notEmpty(at, len(ids))
	for i, id := range ids {
		if id < 0 || id > maxUserID {
			v.Add(at.Index(i), at, "found %d, expected a %s id from 0 to %d", id, kind, int64(maxUserID))
		}
	}
}

func (v validator) notEmpty(at yamlfile.Place, length int) {
	if length == 0 && v.Present(at) {
		v.Add(at, at, "the list is empty, expected at least one value; leave the field out to allow every caller")
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

// CallerPolicy restricts who may use a profile. The caller has to be in each list that the
// profile has.
type CallerPolicy struct {
	containers map[string]struct{}
	uids, gids map[uint32]struct{}
}

// NamesContainers reports whether the policy has a list of containers.
func (p *CallerPolicy) NamesContainers() bool { return p != nil && p.containers != nil }

// Allows reports whether the caller may use the profile. An unknown container, user or group
// is in no list.
func (p *CallerPolicy) Allows(c Caller) bool {
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

func (p *CallerPolicy) allowsID(allowed map[uint32]struct{}, id uint32, known bool) bool {
	if allowed == nil {
		return true
	}
	_, ok := allowed[id]
	return ok && known
}

func compileCallers(c *Callers) *CallerPolicy {
	if c == nil {
		return nil
	}
	p := &CallerPolicy{uids: idSet(c.UIDs), gids: idSet(c.GIDs)}
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
		set[uint32(id)] = struct{}{} // the validator has checked the range
	}
	return set
}

// IsContainerName reports whether Kubernetes allows a text as the name of a container: at
// most 63 lower-case letters, digits and inner hyphens.
func IsContainerName(s string) bool { return pattern.IsDNSLabel(s) }

// lost returns the callers that this policy allows and the policy after does not.
func (p *CallerPolicy) lost(after *CallerPolicy) (lost []string) {
	if after == nil {
		return nil
	}
	if p == nil {
		p = &CallerPolicy{}
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
