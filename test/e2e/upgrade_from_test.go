// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/released"
)

// previous is an earlier version, whose images the cluster has.
type previous struct {
	// source is a checkout, and chart is what "helm" takes.
	source, chart string
	// images are what the chart is installed with. It is nil if the chart names them itself.
	images *environment.Images
	// broker is the name of the image of the brokers of this version.
	broker string
}

// newestRelease is the value of UPGRADE_FROM for the newest version that is released.
const newestRelease = "released"

// previousVersion checks out and builds the version that UPGRADE_FROM names, which "make test-upgrade" sets: the newest release, or any
// commit. Without it, that is the commit before the current source: the one before HEAD, or HEAD itself when files differ from it.
func previousVersion(t testing.TB) previous {
	t.Helper()
	from := os.Getenv("UPGRADE_FROM")
	if from == newestRelease {
		versions, err := released.All(shared.Repository)
		must(t, err)
		return release(t, versions[len(versions)-1])
	}
	if from == "" {
		from = "HEAD"
		changed, err := environment.Command(t.Context(), shared.Repository, nil, "git", "status", "--porcelain")
		must(t, err)
		if changed == "" {
			from = "HEAD~1"
		}
	}
	source := checkout(t, from)
	images, err := environment.BuildImages(t.Context(), os.Stderr, environment.ImageOptions{
		Out: filepath.Join(shared.Cache, "e2e", "images-previous"), Source: source})
	must(t, err)
	must(t, shared.cluster.Load(t.Context(), os.Stderr, images.Archives...))
	return previous{source, environment.Chart(source), images, images.Image("broker")}
}

func checkout(t testing.TB, commit string) (source string) {
	t.Helper()
	source = filepath.Join(t.TempDir(), "source")
	id, err := released.Checkout(t.Context(), shared.Repository, commit, source)
	must(t, err)
	t.Logf("upgrading from %s", id)
	return source
}

// release makes the files of a released version with the programs that made the release: the chart is the same file, and the images are
// the same for the architecture of this machine. They are loaded by the names that the chart has for them.
func release(t testing.TB, version released.Version) previous {
	t.Helper()
	source := checkout(t, version.Commit)
	made := func(script string, arguments ...string) {
		t.Helper()
		_, err := environment.Command(t.Context(), source, os.Stderr, filepath.Join(source, script), arguments...)
		must(t, err)
	}
	number := strings.TrimPrefix(version.Name, "v")
	files := filepath.Join(t.TempDir(), "files")
	made("hack/release/release", "--parts", "chart", "--out", files)
	made("hack/image/build", "--oci", "--arch", runtime.GOARCH, "--only", "operator,broker", "--tag", number, "--version", version.Name, "--out", files)
	const registry = "ghcr.io/crypto-broker/"
	for _, name := range []string{"operator", "broker"} {
		must(t, shared.cluster.Load(t.Context(), os.Stderr, registry+name+"="+filepath.Join(files, name+"-"+number+".oci.tar")))
	}
	return previous{source, filepath.Join(files, "crypto-broker-operator-"+number+".tgz"), nil, registry + "broker:" + number}
}

// expectBroker fails the test unless a pod has a broker of this image.
func expectBroker(t testing.TB, pod *corev1.Pod, image string) {
	t.Helper()
	if found := pod.Spec.InitContainers[0].Image; found != image {
		t.Errorf("found the broker %s in %s, expected %s", found, pod.Name, image)
	}
}

// definition has the fields of a resource definition that the test compares. The values of its versions are parsed JSON, so that
// they do not depend on the formatting.
type definition struct {
	Metadata struct{ Name string }
	Spec     struct{ Versions []any }
}

// expectDefinitionsOf fails the test unless the cluster has the definitions of resources of a checkout.
func expectDefinitionsOf(t testing.TB, source string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(source, "config", "crd", "bases", "*.yaml"))
	must(t, err)
	if len(paths) == 0 {
		t.Fatalf("found no definitions of resources in %s", source)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		must(t, err)
		var want, found definition
		must(t, yaml.Unmarshal(content, &want))
		text, err := kubectl(t, "", "get", "crd", want.Metadata.Name, "-o", "json")
		must(t, err)
		must(t, json.Unmarshal([]byte(text), &found))
		if !reflect.DeepEqual(found.Spec.Versions, want.Spec.Versions) {
			t.Errorf("the cluster has another definition of %s than %s", want.Metadata.Name, path)
		}
	}
}
