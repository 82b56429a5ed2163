// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	kyaml "sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

var update = flag.Bool("update", false, "write the golden files")

// resources has the content of a file in.yaml.
type resources struct {
	namespace  corev1.Namespace
	namespaced []v1alpha1.CryptoProfile
	cluster    []v1alpha1.ClusterCryptoProfile
}

func read(t *testing.T, file string) resources {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all resources
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data)))
	for {
		document := make([]byte, len(data))
		n, err := documents.Read(document)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		var kind runtime.TypeMeta
		if err := kyaml.Unmarshal(document[:n], &kind); err != nil {
			t.Fatal(err)
		}
		switch kind.Kind {
		case "Namespace":
			err = kyaml.UnmarshalStrict(document[:n], &all.namespace)
		case "CryptoProfile":
			all.namespaced = append(all.namespaced, v1alpha1.CryptoProfile{})
			err = kyaml.UnmarshalStrict(document[:n], &all.namespaced[len(all.namespaced)-1])
		case "ClusterCryptoProfile":
			all.cluster = append(all.cluster, v1alpha1.ClusterCryptoProfile{})
			err = kyaml.UnmarshalStrict(document[:n], &all.cluster[len(all.cluster)-1])
		default:
			err = fmt.Errorf("unexpected kind %q", kind.Kind)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestEffectiveSets(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs found (%v)", err)
	}
	for _, input := range inputs {
		t.Run(filepath.Base(filepath.Dir(input)), func(t *testing.T) {
			in := read(t, input)
			result := Effective(in.namespaced, in.cluster, &in.namespace)
			golden(t, filepath.Join(filepath.Dir(input), "Profiles.yaml"), result.Data)
			golden(t, filepath.Join(filepath.Dir(input), "verdicts.txt"), verdicts(result))

			set, problems := profile.Compile(profile.FileName, result.Data)
			if set == nil || len(problems) > 0 {
				t.Fatalf("the broker refuses what was rendered: %v", problems)
			}
			if diff := cmp.Diff(set.Names(), result.Names, cmpEmptyIsNil); diff != "" {
				t.Errorf("names (-broker +result):\n%s", diff)
			}
			if set.Digest() != result.Digest {
				t.Errorf("digest %s, the broker says %s", result.Digest, set.Digest())
			}

			slices.Reverse(in.namespaced)
			slices.Reverse(in.cluster)
			if again := Effective(in.namespaced, in.cluster, &in.namespace); !bytes.Equal(again.Data, result.Data) {
				t.Errorf("the order of the input changed the output:\n%s", cmp.Diff(string(result.Data), string(again.Data)))
			}
		})
	}
}

var cmpEmptyIsNil = cmp.Transformer("emptyIsNil", func(in []string) []string {
	if len(in) == 0 {
		return nil
	}
	return in
})

func verdicts(result Result) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "refusal: %q\n", result.Refusal)
	for kind, all := range map[string]map[string]Verdict{"ClusterCryptoProfile": result.Cluster, "CryptoProfile": result.Namespaced} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			v := all[name]
			fmt.Fprintf(&b, "%s %s generation %d: accepted=%t %s: %s\n", kind, name, v.Version.Generation, v.Accepted, v.Reason, v.Message)
		}
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	slices.Sort(lines)
	return []byte(strings.Join(lines, "\n") + "\n")
}

func golden(t *testing.T, file string, found []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, found, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(found)); diff != "" {
		t.Errorf("%s (-want +found; run with -update to write it):\n%s", file, diff)
	}
}

func TestCryptoProfilesForWhichThereIsNoRoomAreLeftOut(t *testing.T) {
	day := func(n int) metav1.Time { return metav1.NewTime(time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC)) }
	own := func(name string, created metav1.Time, size int) v1alpha1.CryptoProfile {
		p := v1alpha1.CryptoProfile{}
		p.Name, p.CreationTimestamp = name, created
		p.Spec = sized(size)
		return p
	}
	ofCluster := func(name string, size int) v1alpha1.ClusterCryptoProfile {
		p := v1alpha1.ClusterCryptoProfile{}
		p.Name, p.CreationTimestamp = name, day(9)
		p.Spec.ProfileSpec = sized(size)
		return p
	}
	invalid := own("invalid", day(1), 10)
	invalid.Spec.API.HashData.HashAlg = "md5"
	restricting := own("restricting", day(1), 10)
	restricting.Spec.Callers = &v1alpha1.Callers{Containers: []string{"web"}}
	tests := map[string]struct {
		own     []v1alpha1.CryptoProfile
		cluster []v1alpha1.ClusterCryptoProfile
		served  []string
	}{
		"one that is too large for any set":        {own: []v1alpha1.CryptoProfile{own("large", day(1), MaxSetSize), own("small", day(2), 10)}, served: []string{"small"}},
		"the younger of two":                       {own: []v1alpha1.CryptoProfile{own("a-younger", day(2), MaxSetSize/2), own("older", day(1), MaxSetSize/2)}, served: []string{"older"}},
		"one of the namespace, not of the cluster": {own: []v1alpha1.CryptoProfile{own("filling", day(1), MaxSetSize-1000)}, cluster: []v1alpha1.ClusterCryptoProfile{ofCluster("policy", 1000)}, served: []string{"policy"}},
		"a large one, while a younger small one still fits": {
			own:    []v1alpha1.CryptoProfile{own("first", day(1), MaxSetSize/2), own("second", day(2), MaxSetSize/2), own("third", day(3), 10)},
			served: []string{"first", "third"},
		},
		"one beside an invalid one": {
			own: []v1alpha1.CryptoProfile{own("large", day(1), MaxSetSize), invalid},
		},
		"one beside a profile that needs the map form": {
			own:    []v1alpha1.CryptoProfile{restricting, own("large", day(2), MaxSetSize)},
			served: []string{"restricting"},
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			result := Effective(test.own, test.cluster, &corev1.Namespace{})
			if result.Refusal != "" || len(result.Data) > MaxSetSize {
				t.Fatalf("found %d bytes and the refusal %q", len(result.Data), result.Refusal)
			}
			if diff := cmp.Diff(test.served, result.Names); diff != "" {
				t.Errorf("other profiles in the set than expected (-want +found):\n%s", diff)
			}
			for name, verdict := range result.Namespaced {
				if name == invalid.Name {
					if verdict.Reason != v1alpha1.ReasonInvalid {
						t.Errorf("%s: %+v", name, verdict)
					}
					continue
				}
				if verdict.Accepted != slices.Contains(test.served, name) || !verdict.Accepted && (verdict.Reason != v1alpha1.ReasonTooLarge || !strings.Contains(verdict.Message, "this one is left out")) {
					t.Errorf("%s: %+v", name, verdict)
				}
			}
			for name, verdict := range result.Cluster {
				if !verdict.Accepted {
					t.Errorf("%s: %+v", name, verdict)
				}
			}
		})
	}
}

func TestASetThatTheClustersProfilesFillIsRefusedAsAWhole(t *testing.T) {
	large := v1alpha1.ClusterCryptoProfile{}
	large.Name = "large"
	large.Spec.ProfileSpec = sized(MaxSetSize)
	small := v1alpha1.CryptoProfile{}
	small.Name = "small"
	small.Spec = sized(10)
	result := Effective([]v1alpha1.CryptoProfile{small}, []v1alpha1.ClusterCryptoProfile{large}, &corev1.Namespace{})
	if result.Data != nil || result.Digest != "" || !strings.Contains(result.Refusal, "brokers keep the set that they have") {
		t.Fatalf("expected nothing to write and a sentence, found %d bytes and %q", len(result.Data), result.Refusal)
	}
	for name, verdict := range map[string]Verdict{"large": result.Cluster["large"], "small": result.Namespaced["small"]} {
		if verdict.Accepted || verdict.Reason != v1alpha1.ReasonTooLarge {
			t.Errorf("%s: %+v", name, verdict)
		}
	}
}

// sized returns a profile that takes a little more than this many bytes.
func sized(size int) v1alpha1.ProfileSpec {
	return v1alpha1.ProfileSpec{
		API: v1alpha1.Operations{HashData: &v1alpha1.HashData{HashAlg: "sha3-512"}},
		KMS: &v1alpha1.KMS{Client: "test", Config: map[string]apiextensionsv1.JSON{"text": {Raw: []byte(`"` + strings.Repeat("x", size) + `"`)}}},
	}
}

func TestProblemsCarryTheFieldPathOfTheResource(t *testing.T) {
	valid := func() v1alpha1.ProfileSpec {
		return v1alpha1.ProfileSpec{API: v1alpha1.Operations{HashData: &v1alpha1.HashData{HashAlg: "sha3-512"}}}
	}
	tests := map[string]struct {
		name  string
		spec  func(*v1alpha1.ProfileSpec)
		field string // "" for none
	}{
		"a valid profile has none":            {spec: func(*v1alpha1.ProfileSpec) {}},
		"an unknown digest algorithm":         {spec: func(s *v1alpha1.ProfileSpec) { s.API.HashData.HashAlg = "md5" }, field: "spec.api.hashData.hashAlg"},
		"no operation":                        {spec: func(s *v1alpha1.ProfileSpec) { s.API = v1alpha1.Operations{} }, field: "spec.api"},
		"an object name that is too long":     {name: strings.Repeat("n", 65), spec: func(*v1alpha1.ProfileSpec) {}, field: "metadata.name"},
		"a profile name that is too long":     {spec: func(s *v1alpha1.ProfileSpec) { s.ProfileName = strings.Repeat("n", 65) }, field: "spec.profileName"},
		"a profile that is its own successor": {spec: func(s *v1alpha1.ProfileSpec) { s.Deprecation = &v1alpha1.Deprecation{ReplacedBy: "name"} }, field: "spec.deprecation.replacedBy"},
		"a user id below zero":                {spec: func(s *v1alpha1.ProfileSpec) { s.Callers = &v1alpha1.Callers{UIDs: []int64{0, -1}} }, field: "spec.callers.uids[1]"},
		"a wrong pin of a key": {spec: func(s *v1alpha1.ProfileSpec) {
			s.API.EncryptData = &v1alpha1.EncryptData{EncryptAlg: "aes-gcm", KeySize: 128, NonceStrategy: "random", TagLength: 128, KeyIDs: []v1alpha1.KeyID{{ID: "a"}, {ID: "b", SPKISHA256: "c"}}}
		}, field: "spec.api.encryptData.keyIds[1].spkiSHA256"},
		"a small key": {spec: func(s *v1alpha1.ProfileSpec) {
			s.API.SignData = &v1alpha1.SignData{SignAlg: "rsa", HashAlg: "sha-256", KeyConstraints: &v1alpha1.DataKeyConstraints{Issuer: &v1alpha1.KeyAlgorithms{RSA: &v1alpha1.RSAKeySize{MinKeySize: 1, MaxKeySize: 2048}}}}
		}, field: "spec.api.signData.keyConstraints.issuer.rsa.minKeySize"},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			spec := valid()
			test.spec(&spec)
			name := test.name
			if name == "" {
				name = "name"
			}
			errs := Validate(name, &spec)
			var fields []string
			for _, err := range errs {
				fields = append(fields, err.Field)
				if err.Detail == "" || strings.Contains(err.Error(), "{}") {
					t.Errorf("expected one clear sentence, found %q", err.Error())
				}
			}
			var want []string
			if test.field != "" {
				want = []string{test.field}
			}
			if diff := cmp.Diff(want, fields); diff != "" {
				t.Errorf("fields (-want +found):\n%s\n%v", diff, errs)
			}
		})
	}
}

func TestFieldNames(t *testing.T) {
	for inFile, want := range map[string]string{
		"":                                  "spec",
		"API.HashData.HashAlg":              "spec.api.hashData.hashAlg",
		"API.SignCertificate.SKIHashAlg":    "spec.api.signCertificate.skiHashAlg",
		"API.SignCertificate.KeyIds[2].Id":  "spec.api.signCertificate.keyIds[2].id",
		"API.SignData.KeyIds[0].SPKISHA256": "spec.api.signData.keyIds[0].spkiSHA256",
		"API.SignCertificate.KeyConstraints.Subject.Ed25519.MinKeySize": "spec.api.signCertificate.keyConstraints.subject.ed25519.minKeySize",
		"API.SignCertificate.BasicConstraints.CA":                       "spec.api.signCertificate.basicConstraints.ca",
		"API.SignCertificate.SubjectAltNames.DNS[12]":                   "spec.api.signCertificate.subjectAltNames.dns[12]",
		"Callers.UIDs[0]":              "spec.callers.uids[0]",
		"Callers.GIDs":                 "spec.callers.gids",
		"KMS.Config.TokenLabel.SubKey": "spec.kms.config.TokenLabel.SubKey",
		"KMS.Client":                   "spec.kms.client",
		"Settings.CryptoLibrary":       "spec.settings.cryptoLibrary",
	} {
		if found := path(inFile, false).String(); found != want {
			t.Errorf("%q is %q, expected %q", inFile, found, want)
		}
	}
}

func TestAResourceWhoseRequestsCouldNameAnyKeyIsWarnedOf(t *testing.T) {
	sealing := func(nonces string, keys ...v1alpha1.KeyID) *v1alpha1.ProfileSpec {
		return &v1alpha1.ProfileSpec{API: v1alpha1.Operations{EncryptData: &v1alpha1.EncryptData{EncryptAlg: "aes-gcm", KeySize: 256, NonceStrategy: nonces, TagLength: 128, KeyIDs: keys}}}
	}
	for sentence, c := range map[string]struct {
		spec *v1alpha1.ProfileSpec
		want []string
	}{
		"where it has fields of this project and no list": {sealing("random"), []string{
			`spec.api.encryptData.keyIds: is missing, so requests bring their keys and cannot name keys of the broker, as older brokers allow; list the keys to allow, or "*" alone for all keys`,
		}},
		"but not with a list":                    {sealing("random", v1alpha1.KeyID{ID: keyrules.AnyID}), nil},
		"but not where released brokers know it": {sealing("user-provided"), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Warnings("name", c.spec)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
