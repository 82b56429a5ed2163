// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

func TestCommands(t *testing.T) {
	foreign := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for sentence, each := range map[string]struct {
		arguments  []string
		kubeconfig string
		says       []string
	}{
		"an unknown command is refused with those there are": {arguments: []string{"start"}, says: []string{`"start"`, "run, down or prometheus"}},
		"an argument behind the command is refused":          {arguments: []string{"run", "fast"}, says: []string{`"fast"`}},
		"a cluster that can't be given the images is refused with the ways to do it": {kubeconfig: foreign,
			says: []string{foreign, "DEMO_IMAGE_REGISTRY", "DEMO_IMAGE_LOAD"}},
		"a kubeconfig that does not exist is refused": {kubeconfig: foreign + "-none", says: []string{foreign + "-none"}},
		"several kubeconfigs are refused":             {kubeconfig: foreign + ":" + foreign, says: []string{"several files"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Setenv("KUBECONFIG", each.kubeconfig)
			t.Setenv("DEMO_IMAGE_REGISTRY", "")
			t.Setenv("DEMO_IMAGE_LOAD", "")
			err := run(context.Background(), each.arguments, &bytes.Buffer{})
			if err == nil {
				t.Fatal("found no error")
			}
			for _, part := range each.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("found the error %q, expected it to say %q", err, part)
				}
			}
		})
	}
}

func TestTheManifestsSayWhatTheDemoTellsOfThem(t *testing.T) {
	read := func(name string) string {
		content, err := fs.ReadFile(manifests, "manifests/"+name)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	if found := strings.Count(read("app.yaml"), "image: "+placeholder+"\n"); found != 2 {
		t.Errorf("found the application's image %d times, expected once in the Deployment and once in the Job", found)
	}
	profiles := strings.Split(read("profiles.yaml"), "\n---\n")
	for name, content := range map[string]string{firstAlgorithm: profiles[0], secondAlgorithm: read("changed-profile.yaml")} {
		var profile v1alpha1.CryptoProfile
		if err := yaml.UnmarshalStrict([]byte(content), &profile); err != nil {
			t.Fatal(err)
		}
		if profile.Spec.API.HashData.HashAlg != name || profile.Namespace != namespace {
			t.Errorf("found %+v, expected the algorithm %s", profile.Spec.API.HashData, name)
		}
	}
	var shared v1alpha1.ClusterCryptoProfile
	if err := yaml.UnmarshalStrict([]byte(profiles[1]), &shared); err != nil {
		t.Fatal(err)
	}
	if shared.Name != clusterProfile {
		t.Errorf("found the cluster's profile %s, expected %s, which is what is removed", shared.Name, clusterProfile)
	}
}

func TestTheTableSaysWhatHappenedWhen(t *testing.T) {
	var written bytes.Buffer
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	newOutput(&written).table([]event{
		{what: "profile applied", at: start},
		{what: "new algorithm seen", at: start.Add(720 * time.Millisecond), after: start, of: "that", note: "target 1 s: met"},
	})
	want := `
  what                                         when           how long after
  profile applied                              12:00:00.000
  new algorithm seen                           12:00:00.720     0.72 s after that  (target 1 s: met)
`
	if written.String() != want {
		t.Errorf("found\n%s\nexpected\n%s", written.String(), want)
	}
}
