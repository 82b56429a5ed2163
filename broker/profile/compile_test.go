// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
)

// served compiles a file and returns the digest algorithm of each profile that
// is served, and the problems.
func served(t *testing.T, file string) (map[string]string, profile.Problems) {
	t.Helper()
	set, problems := profile.Compile(profile.FileName, []byte(file))
	if set == nil {
		return nil, problems
	}
	got := map[string]string{}
	for _, name := range set.Names() {
		p, ok := set.Lookup(name)
		if !ok {
			t.Fatalf("set names %q and does not find it", name)
		}
		if p.Hash() != nil {
			got[name] = p.Hash().Algorithm().String()
		} else {
			got[name] = ""
		}
	}
	return got, problems
}

func TestEveryFormOfAFileIsRead(t *testing.T) {
	for sentence, test := range map[string]struct {
		file string
		want map[string]string
	}{
		"a list": {
			"- Name: A\n  API: {HashData: {HashAlg: sha-256}}\n- Name: B\n  API: {HashData: {HashAlg: sha-512}}\n",
			map[string]string{"A": "sha-256", "B": "sha-512"},
		},
		"a map": {
			"FormatVersion: 1\nSettings: {CryptoLibrary: native}\nKMS: {Client: vault, Config: {address: \"https://vault\", retries: 3}}\nProfiles:\n- Name: A\n  API: {HashData: {HashAlg: sha-256}}\n",
			map[string]string{"A": "sha-256"},
		},
		"JSON":                            {`[{"Name":"A","API":{"HashData":{"HashAlg":"sha-256"}}}]`, map[string]string{"A": "sha-256"}},
		"a byte order mark":               {"\ufeff- Name: A\n  API: {HashData: {HashAlg: sha-256}}\n", map[string]string{"A": "sha-256"}},
		"Windows line breaks":             {"- Name: A\r\n  API:\r\n    HashData:\r\n      HashAlg: sha-256\r\n", map[string]string{"A": "sha-256"}},
		"the marks of one document":       {"---\n- Name: A\n  API: {HashData: {HashAlg: sha-256}}\n...\n", map[string]string{"A": "sha-256"}},
		"an algorithm in capitals":        {"- Name: A\n  API: {HashData: {HashAlg: SHAKE-128}}\n", map[string]string{"A": "shake-128"}},
		"a name that looks like a number": {"- Name: 2020\n  API: {HashData: {HashAlg: sha-256}}\n", map[string]string{"2020": "sha-256"}},
		"a deprecation with a date":       {"- Name: A\n  API: {HashData: {HashAlg: sha-256}}\n  Deprecation: {DeprecatedSince: 2025-01-01, RemoveAfter: 0.9, ReplacedBy: B}\n", map[string]string{"A": "sha-256"}},
		"an alias":                        {"- Name: A\n  API: &api {HashData: {HashAlg: sha-256}}\n- Name: B\n  API: *api\n", map[string]string{"A": "sha-256", "B": "sha-256"}},
		"a merge key":                     {"- &a\n  Name: A\n  API: {HashData: {HashAlg: sha-256}}\n- <<: *a\n  Name: B\n", map[string]string{"A": "sha-256", "B": "sha-256"}},
		"a merge of several":              {"- Name: A\n  API: {HashData: &h {HashAlg: sha-256}}\n- Name: B\n  API: {HashData: {<<: [*h]}}\n", map[string]string{"A": "sha-256", "B": "sha-256"}},
		"a list of no profiles":           {"[]\n", map[string]string{}},
		"a map of no profiles":            {"Profiles: []\n", map[string]string{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, problems := served(t, test.file)
			if err := problems.Err(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryAlgorithmCanBeChosen(t *testing.T) {
	names := algorithm.Digests(algorithm.ForData)
	if len(names) != 9 {
		t.Errorf("%d algorithms, want 9", len(names))
	}
	for _, name := range names {
		got, problems := served(t, "- Name: A\n  API: {HashData: {HashAlg: "+strings.ToUpper(name)+"}}\n")
		if diff := cmp.Diff(map[string]string{"A": name}, got); diff != "" {
			t.Errorf("%s: %v\n%s", name, problems, diff)
		}
	}
}

func TestAProblemTakesOnlyItsProfileOut(t *testing.T) {
	const good = "- Name: Good\n  API: {HashData: {HashAlg: sha-256}}\n"
	for sentence, test := range map[string]struct {
		file string
		want map[string]string
	}{
		"an unknown field":                      {good + "- Name: Bad\n  Colour: red\n  API: {HashData: {HashAlg: sha-256}}\n", map[string]string{"Good": "sha-256"}},
		"a bad value of an operation":           {good + "- Name: Bad\n  API: {HashData: {HashAlg: sha-256}, EncryptData: {EncryptAlg: none, KeySize: 128}}\n", map[string]string{"Good": "sha-256"}},
		"two profiles of one name":              {"- Name: Twin\n  API: {HashData: {HashAlg: sha-256}}\n" + good + "- Name: Twin\n  API: {HashData: {HashAlg: sha-512}}\n", map[string]string{"Good": "sha-256"}},
		"three profiles of one name":            {strings.Repeat("- Name: Twin\n  API: {HashData: {HashAlg: sha-256}}\n", 3) + good, map[string]string{"Good": "sha-256"}},
		"a bad profile of the name of another":  {"- Name: Twin\n  API: {HashData: {HashAlg: sha-256}}\n- Name: Twin\n  API: {HashData: {HashAlg: md5}}\n" + good, map[string]string{"Good": "sha-256"}},
		"a mistake in what an alias stands for": {"- Name: Bad\n  API: &api {HashData: {HashAlg: md5}}\n- Name: Bad too\n  API: *api\n" + good, map[string]string{"Good": "sha-256"}},
		"no valid one":                          {"- Name: Bad\n", nil},
		"a mistake at the root":                 {"Colour: red\nProfiles:\n" + good, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, problems := served(t, test.file)
			if len(problems) == 0 {
				t.Error("no problem was reported")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASetCountsWhatItRejected(t *testing.T) {
	set, _ := profile.Compile(profile.FileName, []byte(strings.Repeat("- Name: Twin\n  API: {HashData: {HashAlg: sha-256}}\n", 2)+
		"- Name: Good\n  API: {HashData: {HashAlg: sha-256}}\n"))
	if set.Len() != 1 || set.Rejected() != 2 {
		t.Errorf("%d served and %d rejected, want 1 and 2", set.Len(), set.Rejected())
	}
}

func TestAliasesDoNotMultiplyBeyondABound(t *testing.T) {
	var file strings.Builder
	file.WriteString("- Name: A\n  API: {HashData: {HashAlg: sha-256}}\n  KMS:\n    Config:\n      l0: &l0 [a, a, a, a, a, a, a, a, a, a]\n")
	for level := 1; level < 10; level++ {
		previous := fmt.Sprintf("*l%d", level-1)
		fmt.Fprintf(&file, "      l%d: &l%d [%s]\n", level, level, strings.TrimSuffix(strings.Repeat(previous+", ", 10), ", "))
	}
	_, problems := served(t, file.String())
	if got := problems.String(); !strings.Contains(got, "holds more than 262144 values once its aliases are followed") {
		t.Errorf("got %q", got)
	}
}

func TestProblemsOfASecretNeverQuoteIt(t *testing.T) {
	_, problems := served(t, "- Name: A\n  API: {HashData: {HashAlg: sha-256}}\n  KMS: {Config: {token: !!binary c2VjcmV0, other: !mine secret}}\n")
	if len(problems) != 2 {
		t.Fatalf("got %d problems, want 2: %v", len(problems), problems)
	}
	if got := problems.String(); strings.Contains(got, "c2VjcmV0") || strings.Contains(got, "secret") {
		t.Errorf("the value is quoted: %s", got)
	}
}

func TestTheDigestIsThatOfTheBytes(t *testing.T) {
	data := []byte("- Name: A\n  API: {HashData: {HashAlg: sha-256}}\n")
	sum := sha256.Sum256(data)
	want := "sha256:" + hex.EncodeToString(sum[:])
	set, _ := profile.Compile(profile.FileName, data)
	if got := profile.Digest(data); got != want {
		t.Errorf("Digest: got %s, want %s", got, want)
	}
	if set.Digest() != want {
		t.Errorf("Set.Digest: got %s, want %s", set.Digest(), want)
	}
}

func TestCallersAreAllowedByEachListThatIsGiven(t *testing.T) {
	app := callers.Caller{Container: "app", UID: 1000, GID: 2000, Known: true}
	for sentence, test := range map[string]struct {
		callers string
		caller  callers.Caller
		allowed bool
	}{
		"nobody is restricted":               {"", callers.Caller{}, true},
		"the container is listed":            {"Callers: {Containers: [side, app]}", app, true},
		"the container is not listed":        {"Callers: {Containers: [side]}", app, false},
		"there is one socket for everybody":  {"Callers: {Containers: [app]}", callers.Caller{UID: 1000, Known: true}, false},
		"the user is listed":                 {"Callers: {UIDs: [1000]}", app, true},
		"the user is not listed":             {"Callers: {UIDs: [0]}", app, false},
		"the user is not known":              {"Callers: {UIDs: [0]}", callers.Caller{Container: "app"}, false},
		"the group is listed":                {"Callers: {GIDs: [2000]}", app, true},
		"the group is not listed":            {"Callers: {GIDs: [1000]}", app, false},
		"only one of two lists has it":       {"Callers: {Containers: [app], UIDs: [1]}", app, false},
		"both of two lists have it":          {"Callers: {Containers: [app], UIDs: [1000]}", app, true},
		"the container is known, no user is": {"Callers: {Containers: [app]}", callers.Caller{Container: "app"}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			set, problems := profile.Compile(profile.FileName, []byte("- Name: A\n  API: {HashData: {HashAlg: sha-256}}\n  "+test.callers+"\n"))
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			p, _ := set.Lookup("A")
			if got := p.Callers().Allows(test.caller); got != test.allowed {
				t.Errorf("allowed: %v, want %v", got, test.allowed)
			}
		})
	}
}
