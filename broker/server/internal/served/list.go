// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	policyv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/policy/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// maxPageSize is the maximum number of profiles that a page has. A page is smaller than
// MaxMessageSize even if each profile has all operations, and texts of the greatest length.
const maxPageSize = 200

// ListProfilesMethod is a method with small requests and large replies. MaxPageMemory is the
// maximum number of bytes of memory that such a reply takes while it is made, unless its profiles
// have very long texts.
const (
	ListProfilesMethod requests.MethodName = "ListProfiles"
	MaxPageMemory                          = 512 << 10
)

// ListProfiles describes the profiles that the caller may use, in pages, by name. A page
// begins after the last name of the page before. So a profile that exists all the time is
// in exactly one page, even if the set of profiles changes between two pages. set is nil
// before the first set.
func ListProfiles(ctx context.Context, set *Set, request *policyv1.ListProfilesRequest) (*policyv1.ListProfilesResponse, error) {
	const name = ListProfilesMethod
	size := int(request.GetPageSize())
	switch {
	case size < 0 || size > maxPageSize:
		return nil, requests.Invalid(name, "pageSize", "is %d, expected 0 to %d", size, maxPageSize)
	case len(request.GetPageToken()) > profile.MaxNameLength:
		return nil, requests.Invalid(name, "pageToken", "has %d bytes, expected nextPageToken of the page before", len(request.GetPageToken()))
	case size == 0:
		size = maxPageSize
	}
	if set == nil {
		return nil, status.Errorf(codes.Unavailable, "%s: no profiles are loaded yet, try again later", name)
	}
	computing := engine.FIPS()
	reply := &policyv1.ListProfilesResponse{
		Digest: set.Digest(),
		Fips:   &policyv1.FipsStatus{Module: computing.Module, Mode: computing.Mode, Required: set.RequiresFIPS()},
	}
	names := set.Names()
	first, found := slices.BinarySearch(names, request.GetPageToken())
	if found {
		first++
	}
	caller, conn := flow.PeerOf(ctx)
	for _, name := range names[first:] {
		p := set.Profiles[name]
		if !conn.MayUse(name) || !p.Callers().Allows(caller) {
			continue
		}
		if len(reply.Profiles) == size {
			reply.NextPageToken = reply.Profiles[size-1].GetName()
			break
		}
		reply.Profiles = append(reply.Profiles, describeProfile(p.Compiled))
	}
	return reply, nil
}

func describeProfile(p *profile.Compiled) *policyv1.Profile {
	description := &policyv1.Profile{Name: p.Name(), Strength: describeStrength(p.Strength())}
	for _, a := range p.Assessments() {
		description.Operations = append(description.Operations, &policyv1.Operation{
			Name:      a.Operation,
			Algorithm: a.Algorithm,
			Strength:  describeStrength(a.Strength),
			Fips:      &policyv1.FipsVerdict{Approved: a.FIPS.Approved(), Reason: a.FIPS.Reason},
			Refused:   a.Refused,
		})
	}
	if d := p.Deprecation(); d != nil {
		description.Deprecation = &policyv1.Deprecation{
			ReplacedBy: d.ReplacedBy, DeprecatedSince: d.DeprecatedSince, RemoveAfter: d.RemoveAfter, Reason: d.Reason,
		}
	}
	return description
}

func describeStrength(s profile.Strength) *policyv1.Strength {
	return &policyv1.Strength{Bits: int32(s.Bits), Limit: s.Limit}
}
