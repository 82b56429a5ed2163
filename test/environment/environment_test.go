// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAKubeconfigOfALocalClusterIsKnownByItsPath(t *testing.T) {
	t.Setenv("CRYPTO_BROKER_CACHE", t.TempDir())
	local, err := LocalCluster("demo")
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := ClusterOf(local.Kubeconfig); err != nil || found.Name != "demo" {
		t.Errorf("found the cluster %+v (%v), expected demo", found, err)
	}
	found, err := ClusterOf(other)
	if err != nil || found.Local() || found.Kubeconfig != other {
		t.Errorf("found the cluster %+v (%v), expected one that is not local", found, err)
	}
	if err := found.Down(t.Context(), nil); err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("removing a foreign cluster: found the error %v, expected a refusal that names it", err)
	}
}

func TestAnErrorOfACommandHasWhatItSaid(t *testing.T) {
	output, err := Command(t.Context(), "", nil, "sh", "-c", "echo output; echo trouble >&2; exit 3")
	if output != "output\n" || err == nil {
		t.Fatalf("found the output %q and the error %v", output, err)
	}
	for _, part := range []string{"exit status 3", "trouble"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("found the error %q, expected it to say %q", err, part)
		}
	}
}

func TestACommandEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := Command(ctx, "", nil, "sleep", "60"); err == nil {
		t.Error("found no error")
	}
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("it took %s to end", took)
	}
}

func TestTheRepositoryIsFoundFromAFolderInIt(t *testing.T) {
	found, err := Repository()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(Chart(found), "Chart.yaml")); err != nil {
		t.Error(err)
	}
	t.Chdir(t.TempDir())
	if found, err := Repository(); err == nil {
		t.Errorf("found the repository %s from a folder outside of it", found)
	}
}
