// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/extensions"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

func TestTheKeyManagerOfAReleasedProfileIsRead(t *testing.T) {
	const file = "- Name: P\n  KMS:\n    Client: openbao\n    Config: openbao.yaml\n    Cache: false\n  API:\n    EncryptData:\n      EncryptAlg: aes-gcm\n      KeySize: 256\n"
	document, problems := profile.Parse(profile.FileName, []byte(file))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(&profile.KMS{Client: "openbao", Config: "openbao.yaml", Cache: false}, document.Profiles[0].KMS); diff != "" {
		t.Errorf("key manager (-want +got):\n%s", diff)
	}
	written, err := profile.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != file {
		t.Errorf("written as\n%s", written)
	}
}

func TestADocumentIsRenderedInTheOldestFormThatCanExpressIt(t *testing.T) {
	released := profile.Profile{Name: "A", API: profile.API{HashData: &profile.HashData{HashAlg: "sha-256"}}}
	restricted := released
	restricted.Callers = &callers.Lists{UIDs: []int64{1000}}
	for sentence, test := range map[string]struct {
		doc  profile.Document
		want string
	}{
		"released fields make a list": {
			profile.Document{Profiles: []profile.Profile{released}},
			"- Name: A\n  API:\n    HashData:\n      HashAlg: sha-256\n",
		},
		"a version that is not needed is left out": {
			profile.Document{FormatVersion: 1, Profiles: []profile.Profile{released}},
			"- Name: A\n  API:\n    HashData:\n      HashAlg: sha-256\n",
		},
		"settings for the whole file make a map": {
			profile.Document{Settings: &profile.Settings{CryptoLibrary: "native"}, Profiles: []profile.Profile{released}},
			"Settings:\n  CryptoLibrary: native\nProfiles:\n  - Name: A\n    API:\n      HashData:\n        HashAlg: sha-256\n",
		},
		"a field that restricts makes a map with a version": {
			profile.Document{Profiles: []profile.Profile{restricted}},
			"FormatVersion: 1\nProfiles:\n  - Name: A\n    API:\n      HashData:\n        HashAlg: sha-256\n    Callers:\n      UIDs:\n        - 1000\n",
		},
		"no profiles are an empty list": {profile.Document{}, "[]\n"},
		"a name that looks like a number is quoted": {
			profile.Document{Profiles: []profile.Profile{{Name: "2020", API: released.API}}},
			"- Name: \"2020\"\n  API:\n    HashData:\n      HashAlg: sha-256\n",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := profile.Marshal(&test.doc)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("rendered (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProfilesThatAreEncodedOneByOneMakeTheDocumentThatIsEncodedAtOnce(t *testing.T) {
	plain := func(name string) profile.Profile {
		return profile.Profile{Name: name, API: profile.API{HashData: &profile.HashData{HashAlg: "sha-256"}}}
	}
	lines := plain("B: - #")
	lines.Deprecation = &profile.Deprecation{Reason: "Profiles:\n  two lines\n\nand one more\n", ReplacedBy: strings.Repeat("long ", 100)}
	restricted := plain("Profiles:")
	restricted.Callers = &callers.Lists{UIDs: []int64{1000}}
	settings := &profile.Settings{CryptoLibrary: "native"}
	for sentence, doc := range map[string]*profile.Document{
		"a list of one":                        {Profiles: []profile.Profile{plain("A")}},
		"a list of several":                    {Profiles: []profile.Profile{plain("A"), lines, plain("2020")}},
		"a map with a version":                 {FormatVersion: 1, Profiles: []profile.Profile{lines, restricted, plain("C"), lines}},
		"a map with settings":                  {Settings: settings, Profiles: []profile.Profile{plain("A"), lines}},
		"a map with one profile":               {Settings: settings, Profiles: []profile.Profile{lines}},
		"a map with settings and no profiles":  {Settings: settings, Profiles: []profile.Profile{}},
		"a map with a key manager and version": {FormatVersion: 1, KMS: &profile.KMS{Client: "openbao"}, Profiles: []profile.Profile{restricted, lines}},
	} {
		var root any = doc
		if doc.FormatVersion == 0 && doc.Settings == nil {
			root = doc.Profiles
		}
		var atOnce bytes.Buffer
		encoder := yaml.NewEncoder(&atOnce)
		encoder.SetIndent(2)
		if err := errors.Join(encoder.Encode(root), encoder.Close()); err != nil {
			t.Fatal(err)
		}
		written, err := profile.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(atOnce.String(), string(written)); diff != "" {
			t.Errorf("%s (-at once +one by one):\n%s", sentence, diff)
		}
	}
}

func TestEveryFieldOfOursNeedsTheVersionThatHasIt(t *testing.T) {
	keys := []keyrules.ID{{ID: "k"}}
	ed25519 := keyrules.Constraints{Issuer: map[string]keyrules.Size{"Ed25519": {MinKeySize: 256, MaxKeySize: 256}}}
	for sentence, p := range map[string]profile.Profile{
		"callers":                         {Callers: &callers.Lists{}},
		"audit":                           {Audit: &profile.Audit{}},
		"key ids of certificates":         {API: profile.API{SignCertificate: &profile.SignCertificate{KeyIDs: keys}}},
		"key ids of encryption":           {API: profile.API{EncryptData: &profile.EncryptData{KeyIDs: keys}}},
		"key ids of signatures":           {API: profile.API{SignData: &profile.SignData{KeyIDs: keys}}},
		"subject alternative names":       {API: profile.API{SignCertificate: &profile.SignCertificate{SubjectAltNames: &extensions.SubjectAltNames{}}}},
		"CRL distribution points":         {API: profile.API{SignCertificate: &profile.SignCertificate{CRLDistributionPoints: &extensions.CRLDistributionPoints{}}}},
		"requests signed with SHA-1":      {API: profile.API{SignCertificate: &profile.SignCertificate{AllowSHA1Requests: true}}},
		"RSA-PSS certificates":            {API: profile.API{SignCertificate: &profile.SignCertificate{SignAlg: "RSA-PSS"}}},
		"Ed25519 signatures":              {API: profile.API{SignData: &profile.SignData{SignAlg: "ed25519"}}},
		"ML-DSA signatures":               {API: profile.API{SignData: &profile.SignData{SignAlg: "ml-dsa-44"}}},
		"a nonce of the broker":           {API: profile.API{EncryptData: &profile.EncryptData{NonceStrategy: "Random"}}},
		"a tag that is cut":               {API: profile.API{EncryptData: &profile.EncryptData{ShortTagLength: 96}}},
		"data keys":                       {API: profile.API{DataKeys: &profile.DataKeys{}}},
		"sizes of Ed25519 in certificate": {API: profile.API{SignCertificate: &profile.SignCertificate{KeyConstraints: ed25519}}},
		"sizes of Ed25519 in signatures":  {API: profile.API{SignData: &profile.SignData{KeyConstraints: ed25519}}},
	} {
		if got := p.FormatVersion(); got != 1 {
			t.Errorf("%s: version %d, want 1", sentence, got)
		}
	}
}

func assertRoundTrip(t *testing.T, doc *profile.Document) {
	t.Helper()
	first, err := profile.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	again, err := profile.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != string(again) {
		t.Errorf("rendered twice:\n%s\n%s", first, again)
	}
	got, problems := profile.Parse(profile.FileName, first)
	if err := problems.Err(); err != nil {
		t.Errorf("%v\nin\n%s", err, first)
		return
	}
	assertJudgedAlike(t, doc, inAnyOrder)
	want := *doc
	want.FormatVersion = 0
	for i := range doc.Profiles {
		want.FormatVersion = max(want.FormatVersion, doc.Profiles[i].FormatVersion())
	}
	if want.Profiles == nil {
		want.Profiles = []profile.Profile{}
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s\nin\n%s", diff, first)
	}
}

// texts are what a YAML library is likely to get wrong.
var texts = []string{
	"", "a", "true", "no", "~", "null", "1", "1.5", "0x10", "1e3", ".inf", "2025-01-01", "2025-01-01T00:00:00Z", "a: b", "- a", "# a", "a # b",
	"'", "\"", "\\", "{a}", "[a]", "&a", "*a", "!a", "|", ">", "%", "@", "`", " a", "a ", "\t", "a\nb", "a\n", "\n", "ü", "日本", "\u0085", "\u2028", "\r", "a\r\nb", "\x07", "\u00a0", "\ufeff", "\U0001f600", "<<", "=", "?", ":", ",",
	strings.Repeat("long text that is folded ", 10),
}

func fill(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	case reflect.Slice:
		if n := r.IntN(4); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(r, v.Index(i))
			}
		}
	case reflect.Map:
		if n := r.IntN(4); n > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				element := reflect.New(v.Type().Elem()).Elem()
				fill(r, element)
				v.SetMapIndex(reflect.ValueOf(texts[r.IntN(len(texts))]), element)
			}
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(valueOf(r, v.Type())))
	case reflect.String:
		v.SetString(texts[r.IntN(len(texts))])
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64N(1<<40) - 1<<39)
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	default:
		panic(v.Kind())
	}
}

// valueOf returns a value of any form that a field of an interface type can have.
func valueOf(r *rand.Rand, t reflect.Type) any {
	isMap := r.IntN(2) == 0
	switch t {
	case reflect.TypeFor[yamlfile.TextOrMap]():
		if !isMap {
			return texts[r.IntN(len(texts))]
		}
	case reflect.TypeFor[yamlfile.BoolOrMap]():
		if !isMap {
			return r.IntN(2) == 0
		}
	default:
		return free(r, 3)
	}
	return map[string]any{texts[r.IntN(len(texts))]: free(r, 2)}
}

func free(r *rand.Rand, depth int) any {
	switch n := r.IntN(6); {
	case n == 0 && depth > 0:
		m := map[string]any{}
		for range r.IntN(3) {
			m[texts[r.IntN(len(texts))]] = free(r, depth-1)
		}
		return m
	case n == 1 && depth > 0:
		list := []any{}
		for range r.IntN(3) {
			list = append(list, free(r, depth-1))
		}
		return list
	case n == 2:
		return r.IntN(2) == 0
	case n == 3:
		return int(r.Int64()) - 1<<62
	case n == 4:
		return float64(r.IntN(1000)) + 0.25
	default:
		return texts[r.IntN(len(texts))]
	}
}
