// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
)

func TestAProfileThatWasServedIsToldAsWithdrawnUntilItIsRightAgain(t *testing.T) {
	const other = "- Name: Other\n  API: {HashData: {HashAlg: sha-256}}\n"
	dir := t.TempDir()
	project(t, dir, map[string]string{profile.FileName: other + file("sha-256")})
	s := watch(t, dir)
	s.serves("sha-256", directory.Loaded)
	var since time.Time
	for _, test := range []struct {
		sentence, content string
		reason            directory.Reason
		withdrawn         bool
	}{
		{"wrong", other + file("md5"), directory.ProfilesRejected, true},
		{"wrong in another way", other + file("md4"), directory.ProfilesRejected, true},
		{"right again", other + file("sha-512"), directory.Loaded, false},
		{"gone", other, directory.Loaded, false},
		{"wrong where it was not there", other + file("md5"), directory.ProfilesRejected, false},
	} {
		project(t, dir, map[string]string{profile.FileName: test.content})
		event := s.next()
		if event.Reason != test.reason || len(event.Withdrawn) > 0 != test.withdrawn {
			t.Fatalf("P is %s: event %+v", test.sentence, event)
		}
		eventually(t, func() bool { return s.State().Digest == event.Set.Digest() })
		if !test.withdrawn {
			continue
		}
		out := s.State().Withdrawn[0]
		if since.IsZero() {
			since = s.State().Since
		}
		if out.Profile != "P" || !out.Since.Equal(since) {
			t.Errorf("P is %s: told %+v, want P since %s", test.sentence, out, since)
		}
	}
}
