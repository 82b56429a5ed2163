// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
)

const (
	goodProfile = "apiVersion: cryptobroker.io/v1alpha1\nkind: CryptoProfile\nmetadata: {name: a}\nspec: {api: {hashData: {hashAlg: sha-256}}}\n"
	goodSet     = "- Name: Default\n  API: {HashData: {HashAlg: sha-256}}\n"
	service     = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"
)

func TestWhateverIsValidatedIsJudgedOrToldInOneSentence(t *testing.T) {
	named := func(metadata string) string { return strings.Replace(goodProfile, "{name: a}", metadata, 1) }
	fine := "1 profile and 0 pods with a broker checked, 0 problems"
	tests := map[string]struct {
		stdin string
		code  int
		says  []string
	}{
		"a file of profiles":               {goodSet, program.ExitOK, []string{"1 file of profiles checked, 0 problems"}},
		"a file of profiles as a map":      {"Profiles:\n" + goodSet, program.ExitOK, []string{"1 file of profiles checked, 0 problems"}},
		"one with a mistake":               {"- Name: D\n  API:\n    HashData: {HashAlg: md5}\n", program.ExitFailed, []string{`standard input:3:25: profile "D": API.HashData.HashAlg: unknown value "md5"`, "1 problem"}},
		"one with a second document":       {goodSet + "---\n" + goodProfile, program.ExitFailed, []string{"found a second YAML document"}},
		"a profile without a name":         {named("{}"), program.ExitFailed, []string{`CryptoProfile "": metadata.name: Required value: name or generateName is required`, "1 problem"}},
		"one whose name is generated":      {named("{generateName: a-}"), program.ExitOK, []string{fine}},
		"one with a name that cannot be":   {named("{name: A_b}"), program.ExitFailed, []string{`CryptoProfile "A_b": metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain`, "1 problem"}},
		"one whose name is a number":       {named("{name: 123}"), program.ExitFailed, []string{`metadata.name: found a value of the type number, expected a text`, "1 problem"}},
		"a label that is a number":         {goodProfile + "---\n" + named("{name: a, labels: {x: 1}}") + "---\n" + goodProfile, program.ExitFailed, []string{`standard input, document 2: CryptoProfile "a": metadata.labels: found a value of the type number, expected a text`, "3 profiles and 0 pods with a broker checked, 1 problem"}},
		"metadata that are a text":         {named("x"), program.ExitFailed, []string{`metadata in body must be of type object`, "1 problem"}},
		"a name too long for a profile":    {named("{name: " + strings.Repeat("a", 65) + "}"), program.ExitFailed, []string{`": Invalid value: metadata.name is longer than the 64 bytes`, "1 problem"}},
		"nothing":                          {"", program.ExitFailed, []string{"standard input has no object in it, expected manifests of Kubernetes"}},
		"empty documents":                  {"---\n# a comment\n---\n", program.ExitFailed, []string{"standard input has no object in it"}},
		"an empty one among others":        {"---\n# Source: a\n---\n" + goodProfile, program.ExitOK, []string{fine}},
		"one bad document of three":        {goodProfile + "---\na: [b\n---\n" + goodProfile, program.ExitFailed, []string{"standard input, document 2: not readable as YAML: line 6: did not find", "2 profiles and 0 pods with a broker checked, 1 problem"}},
		"a comment beside a separator":     {goodProfile + "--- # the next\n" + goodProfile, program.ExitOK, []string{"2 profiles"}},
		"an end of a document":             {goodProfile + "...\n" + goodProfile, program.ExitOK, []string{"2 profiles"}},
		"Windows line ends":                {strings.ReplaceAll(goodProfile+"---\n"+goodProfile, "\n", "\r\n"), program.ExitOK, []string{"2 profiles"}},
		"a byte order mark":                {"\ufeff---\n" + goodProfile, program.ExitOK, []string{fine}},
		"a List in a List":                 {"kind: List\nitems: [{kind: List, items: [{apiVersion: cryptobroker.io/v1alpha1, kind: CryptoProfile, metadata: {name: bad}, spec: {api: {hashData: {hashAlg: md5}}}}]}]\n", program.ExitFailed, []string{`standard input, items[0], items[0]: CryptoProfile "bad": spec.api.hashData.hashAlg`, "1 profile and 0 pods with a broker checked, 1 problem"}},
		"a directive":                      {"# a comment\n%YAML 1.1\n---\n" + goodProfile, program.ExitFailed, []string{"standard input, document 1: found a directive of YAML", "1 profile and 0 pods with a broker checked, 1 problem"}},
		"line breaks of an old Macintosh":  {strings.ReplaceAll(goodProfile+"---\n"+goodProfile, "\n", "\r"), program.ExitFailed, []string{`standard input: found a second document that no line "---" begins`}},
		"a second document after an end":   {goodProfile + "... # the end\n" + goodProfile, program.ExitFailed, []string{`standard input: found a second document that no line "---" begins`}},
		"a second one that is broken":      {goodProfile + "... # the end\n\"kind", program.ExitFailed, []string{`standard input: found a second document that no line "---" begins`}},
		"UTF-16":                           {"\xff\xfea\x00", program.ExitFailed, []string{"standard input is text in UTF-16, as PowerShell writes it, expected YAML or JSON in UTF-8"}},
		"a program":                        {"\x7fELF\x02\x00", program.ExitFailed, []string{"standard input is not text: found a zero byte at offset 5, expected YAML or JSON"}},
		"text in another encoding":         {"kind: caf\xe9\n", program.ExitFailed, []string{"standard input is not text in UTF-8: found the byte 0xe9 at offset 9"}},
		"more than anybody writes":         {strings.Repeat("#", manifest.MaxManifest+1), program.ExitFailed, []string{"standard input has more than 64 MiB"}},
		"JSON":                             {`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}`, program.ExitOK, []string{"not looked at: Service (1)"}},
		"JSON one after the other":         {"{\"apiVersion\":\"v1\",\"kind\":\"Service\"}\n{\"apiVersion\":\"v2\",\"kind\":\"Service\"}", program.ExitOK, []string{"not looked at: Service (2)"}},
		"JSON that ends too early":         {`{"kind": "CryptoProfile"`, program.ExitFailed, []string{"standard input: not readable as YAML: line 1"}},
		"a text":                           {"hello\n", program.ExitFailed, []string{`found the text "hello", expected an object with apiVersion and kind`}},
		"a list of objects":                {"[{kind: Pod}]", program.ExitFailed, []string{"found a list, expected an object with apiVersion and kind"}},
		"a List":                           {"apiVersion: v1\nkind: List\nitems:\n- " + indented(goodProfile) + "- 3\n", program.ExitFailed, []string{"standard input, items[1]: found the value 3, expected an object", "1 profile"}},
		"a list of one kind":               {"apiVersion: cryptobroker.io/v1alpha1\nkind: CryptoProfileList\nitems:\n- " + indented(goodProfile), program.ExitOK, []string{fine}},
		"something that is no manifest":    {"replicas: 3\n", program.ExitFailed, []string{"found an object without apiVersion and kind, expected a manifest of Kubernetes, or a file of profiles"}},
		"other kinds":                      {service + "---\n" + service + "---\napiVersion: v1\nkind: Secret\n", program.ExitOK, []string{"0 problems; not looked at: Secret (1), Service (2)"}},
		"a pod that wants no broker":       {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a}]}\n", program.ExitOK, []string{"0 problems; 1 pod gets no broker"}},
		"a misspelt field":                 {strings.Replace(goodProfile, "hashAlg:", "hashAlgo:", 1), program.ExitFailed, []string{`spec.api.hashData.hashAlgo: there is no such field; did you mean "hashAlg"?`}},
		"a misspelt kind":                  {strings.Replace(goodProfile, "CryptoProfile", "CryptoProfil", 1), program.ExitFailed, []string{`kind: found "CryptoProfil", expected ClusterCryptoProfile, ClusterKeyProvider, CryptoProfile, InjectionTemplate, KeyAccessPeer, KeyAccessPolicy or KeyProvider; did you mean "CryptoProfile"?`}},
		"a version that there is not":      {strings.Replace(goodProfile, "v1alpha1", "v1", 1), program.ExitFailed, []string{`apiVersion: found "cryptobroker.io/v1", expected "cryptobroker.io/v1alpha1"`}},
		"an algorithm that there is not":   {strings.Replace(goodProfile, "hashData: {hashAlg: sha-256}", "signData: {signAlg: dsa}", 1), program.ExitFailed, []string{`spec.api.signData.signAlg: Invalid value: "dsa": expected rsa, rsa-pss, ecdsa or ed25519; with signingMode post-quantum`}},
		"the operator's InjectionTemplate": {"apiVersion: cryptobroker.io/v1alpha1\nkind: InjectionTemplate\nmetadata: {name: a}\nspec: {stamp: x}\n", program.ExitFailed, []string{"spec.socketGroup: Required value", "note: standard input: InjectionTemplate \"a\": the operator writes InjectionTemplates", "1 InjectionTemplate checked"}},
		"a pod of other types":             {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: 3}\n", program.ExitFailed, []string{`Pod "a": spec.containers: found a value of the type number, expected a list`}},
		"a quantity that is none":          {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, resources: {limits: {cpu: lots}}}]}\n", program.ExitFailed, []string{"found no valid quantity, expected one such as 100m or 64Mi"}},
		"a workload without a template":    {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 1}\n---\n" + goodProfile, program.ExitFailed, []string{`standard input, document 1: Deployment "a": there is no spec.template, expected a pod template`, "1 profile"}},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			code, stdout, stderr := call(t, test.stdin, "validate", "-f", "-")
			for _, says := range test.says {
				if !strings.Contains(stdout+stderr, says) {
					t.Errorf("%q is not in\n%s%s", says, stdout, stderr)
				}
			}
			for _, raw := range []string{"json:", "Go value", "map[string]", "regular expression", "yaml:", "should match"} {
				if strings.Contains(stdout+stderr, raw) {
					t.Errorf("found %q in\n%s%s", raw, stdout, stderr)
				}
			}
			if code != test.code {
				t.Errorf("exit code %d, expected %d:\n%s%s", code, test.code, stdout, stderr)
			}
		})
	}
}

// indented is a manifest as an item of a list.
func indented(manifest string) string {
	return strings.ReplaceAll(strings.TrimSuffix(manifest, "\n"), "\n", "\n  ") + "\n"
}

func TestADirectoryIsValidatedAndOneWithoutManifestsIsTold(t *testing.T) {
	directory := t.TempDir()
	if code, _, stderr := call(t, "", "validate", "-f", directory); code != program.ExitFailed || !strings.Contains(stderr, directory+" has no file that ends in .yaml, .yml or .json; directories in it are not read") {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
	for name, content := range map[string]string{"Profiles.yaml": goodSet, "a.yml": goodProfile, "notes.txt": "not: [read"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, stdout, stderr := call(t, "", "validate", "-f", directory); code != program.ExitOK || stdout != "1 file of profiles, 1 profile and 0 pods with a broker checked, 0 problems\n" {
		t.Errorf("exit code %d, found %q, %q", code, stdout, stderr)
	}
}

func TestAFileOfProfilesIsNoManifest(t *testing.T) {
	for _, command := range []string{"inject", "explain"} {
		code, stdout, stderr := call(t, goodSet, command, "-f", "-")
		want := fmt.Sprintf("kubectl crypto-broker %s: standard input is a file of profiles, as a broker reads it, expected manifests of Kubernetes: kubectl crypto-broker validate checks such a file\n", command)
		if code != program.ExitFailed || stdout != "" || stderr != want {
			t.Errorf("exit code %d, found %q, %q", code, stdout, stderr)
		}
	}
}

func TestEveryPatternOfAProfileIsSaidInWords(t *testing.T) {
	schemas, err := manifest.ReadSchemas()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	var look func(path string, s *schema.Structural)
	look = func(path string, s *schema.Structural) {
		if s.ValueValidation != nil && s.ValueValidation.Pattern != "" {
			seen++
			if manifest.Patterns[s.ValueValidation.Pattern] == "" {
				t.Errorf("%s has the pattern %s, which is not said in words", path, s.ValueValidation.Pattern)
			}
		}
		for name, property := range s.Properties {
			look(path+"."+name, &property)
		}
		if s.Items != nil {
			look(path+"[]", s.Items)
		}
	}
	for _, kind := range []string{"CryptoProfile", "ClusterCryptoProfile"} {
		spec := schemas[kind].Structural.Properties["spec"]
		look(kind+".spec", &spec)
	}
	if seen == 0 {
		t.Error("no pattern was found")
	}
}
