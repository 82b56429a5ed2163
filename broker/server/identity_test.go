// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
)

// identityProfiles has one that anybody may use, one of the container side, and
// more operations than HashData.
const identityProfiles = cipherProfiles + `
- Name: Plain
  API: {HashData: {HashAlg: sha-256}}
- Name: Side's
  API: {HashData: {HashAlg: sha-256}}
  Callers: {Containers: [side]}
`

// twoCallers listens for two containers, of which the first may use some profiles
// only.
func twoCallers() unixsocket.Options {
	return unixsocket.Options{
		Callers:  []string{"app", "side"},
		Profiles: map[string][]string{"app": {"Plain", "Side's"}},
	}
}

// hashBy calls HashData in every possible way, and returns the result of each.
func hashBy(t *testing.T, conn *grpc.ClientConn, profile string, metadata message) map[string]error {
	t.Helper()
	said := map[string]error{}
	request := message{}.text(requestProfile, profile).text(requestInput, "abc").bytes(requestMetadata, metadata)
	for _, method := range []string{methodHash, methodHashData, methodHashDataV1} {
		_, said[method] = call(t, conn, method, request)
	}
	_, said[methodHashStream] = hashStream(t, conn, startOf(request), chunk("abc"))
	e := exchange(t, conn)
	e.send(hashCall(1, profile, "abc"))
	a := e.take(1)[1]
	said[methodExchange] = status.Error(a.code(), a.values[theText])
	e.closeSend()
	return said
}

func expectAll(t *testing.T, said map[string]error, code codes.Code, want string) {
	t.Helper()
	for method, err := range said {
		if got := status.Convert(err); got.Code() != code || got.Message() != saidOf(method, want) {
			t.Errorf("%s: got %s %q\nwant %s %q", method, got.Code(), got.Message(), code, saidOf(method, want))
		}
	}
}

func TestACallerUsesTheProfilesThatItMayAndNoOthers(t *testing.T) {
	b := startOn(t, identityProfiles, twoCallers())
	app, side := connect(t, b.socket("app")), connect(t, b.socket("side"))
	expectAll(t, hashBy(t, app, "Plain", nil), codes.OK, "")
	expectAll(t, hashBy(t, side, "Plain", nil), codes.OK, "")
	expectAll(t, hashBy(t, side, "Side's", nil), codes.OK, "")

	const sentence = `the container "app" may use only the profiles that --caller-profiles lists for it`
	refuses(t, app, methodEncryptV1, encryption("P", raw(gcmKey), gcmNonce, gcmPlaintext), codes.PermissionDenied, `EncryptData with profile "P": `+sentence)
	ask(t, side, methodEncryptV1, encryption("P", raw(gcmKey), gcmNonce, gcmPlaintext))
	for _, name := range []string{"P", "Random", "a profile that nobody serves"} {
		expectAll(t, hashBy(t, app, name, nil), codes.PermissionDenied, `HashData with profile "`+name+`": `+sentence)
	}
	// The caller gets a hint about a name in another case, unless it may not use the profile.
	expectAll(t, hashBy(t, app, "plain", nil), codes.PermissionDenied, `HashData with profile "plain": `+sentence+`; did you mean "Plain"?`)
	expectAll(t, hashBy(t, app, "random", nil), codes.PermissionDenied, `HashData with profile "random": `+sentence)
}

func TestWhatAProfileSaysOfItsCallersHoldsForProfilesThatACallerMayUse(t *testing.T) {
	b := startOn(t, identityProfiles, twoCallers())
	for method, err := range hashBy(t, connect(t, b.socket("app")), "Side's", nil) {
		if got := status.Convert(err); got.Code() != codes.PermissionDenied || !strings.Contains(got.Message(), `the profile does not allow container "app", user `) {
			t.Errorf("%s: got %v", method, err)
		}
	}
}

// The socket identifies the caller, not the name in the request.
func TestAContainerThatNamesAnotherGetsTheVerdictOfItsOwnIdentity(t *testing.T) {
	b := startOn(t, identityProfiles, twoCallers())
	named := message{}.text(metadataID, "side").bytes(metadataTrace, message{}.text(traceCorrelationID, "container=side"))
	for method, err := range hashBy(t, connect(t, b.socket("app")), "Side's", named) {
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: got %v, want PermissionDenied", method, err)
		}
	}
	expectAll(t, hashBy(t, connect(t, b.socket("side")), "Side's", named), codes.OK, "")
}

func TestAListHasTheProfilesThatTheCallerMayUse(t *testing.T) {
	b := startOn(t, identityProfiles, twoCallers())
	names := func(caller string) (names []string) {
		lines, _ := listed(t, connect(t, b.socket(caller)), nil)
		for _, line := range lines {
			if name, _, found := strings.Cut(line, ": "); found && !strings.HasPrefix(line, " ") {
				names = append(names, name)
			}
		}
		return names
	}
	if diff := cmp.Diff([]string{"Plain"}, names("app")); diff != "" {
		t.Errorf("profiles of app (-want +got):\n%s", diff)
	}
	all := names("side")
	if len(all) < 4 || all[len(all)-1] != "Side's" {
		t.Errorf("side sees %q, expected all", all)
	}
}

func TestAProfileThatNamesContainersRefusesCallersThatCanCallForEachOther(t *testing.T) {
	options := twoCallers()
	options.Shared = true
	b := startOn(t, identityProfiles, options)
	side, app := connect(t, b.socket("side")), connect(t, b.socket("app"))
	for method, err := range hashBy(t, side, "Side's", nil) {
		const want = `the profile does not allow an unknown container, because the containers of this broker share their processes and can call for each other (see --shared-identity), user `
		if got := status.Convert(err); got.Code() != codes.PermissionDenied || !strings.HasPrefix(got.Message(), saidOf(method, `HashData with profile "Side's": `+want)) {
			t.Errorf("%s: got %v", method, err)
		}
	}
	expectAll(t, hashBy(t, side, "Plain", nil), codes.OK, "")
	// A socket, shared or not, lists what all callers of a pod may use.
	refuses(t, app, methodEncryptV1, encryption("P", raw(gcmKey), gcmNonce, gcmPlaintext), codes.PermissionDenied,
		`EncryptData with profile "P": the container "app" may use only the profiles that --caller-profiles lists for it`)
	lines, _ := listed(t, side, nil)
	if text := strings.Join(lines, "\n"); strings.Contains(text, "Side's") || !strings.Contains(text, "Plain") {
		t.Errorf("the list has the profile that names containers:\n%s", text)
	}
}
