// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

func TestTheComposeFileFollowsTheSpecification(t *testing.T) {
	file := filepath.Join(guides, "compose", "compose.yaml")
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: filepath.Dir(file), ConfigFiles: []types.ConfigFile{{Filename: file}}, Environment: types.Mapping{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(project.Services) != 2 {
		t.Errorf("found %d services, expected a broker and an application", len(project.Services))
	}
	for name, s := range project.Services {
		if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || s.MemLimit == 0 || s.PidsLimit == 0 || s.NetworkMode != "none" ||
			s.User == "" || strings.HasPrefix(s.User, "0") || len(s.SecurityOpt) != 1 || s.SecurityOpt[0] != "no-new-privileges:true" || s.Privileged {
			t.Errorf("the service %s may do more than it needs: %+v", name, s)
		}
	}
	if d := project.Services["app"].DependsOn["broker"]; d.Condition != types.ServiceConditionHealthy {
		t.Errorf("the application waits for %q of the broker", d.Condition)
	}
}

// images builds and loads the images of the example.
func images(t *testing.T, e *engine) {
	t.Helper()
	build := exec.CommandContext(t.Context(), filepath.Join(repository, "hack/image/build"), "--tag", "latest", "--only", "broker,cli", "--out", filepath.Join(cache(), "deployment", "images"))
	build.Stderr = os.Stderr
	output, err := build.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(output)) {
		_, archive, _ := strings.Cut(strings.TrimSpace(line), "\t")
		e.podman("load", "--quiet", "--input", archive)
	}
}

func TestTheComposeFileRunsABrokerForItsApplication(t *testing.T) {
	e := newEngine(t)
	images(t, e)
	folder := filepath.Join(e.folder, "compose")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(guides, "compose"))); err != nil {
		t.Fatal(err)
	}
	e.compose(folder, "up", "--detach")
	const app, broker, volume = "crypto-broker_app_1", "crypto-broker_broker_1", "crypto-broker_socket"

	if got := e.podman("exec", app, "/crypto-broker", "hash-data", "Welcome", "--output", "text"); got != digest+"\n" {
		t.Errorf("the application got %q", got)
	}
	eventually(t, "the application's own calls are answered", func(ctx context.Context) bool {
		got := e.run(ctx, folder, "podman", "logs", app)
		return got.code == 0 && strings.Contains(got.stdout, `"hashValueHex":"`+digest)
	})
	e.podman("healthcheck", "run", broker)

	log := e.run(t.Context(), folder, "podman", "logs", broker).stderr
	if !strings.Contains(log, `"limit":134217728,`) {
		t.Errorf("the broker does not keep to 128 MiB:\n%s", log)
	}
	for _, container := range []string{app, broker} {
		confined(t, e, container)
	}

	for sentence, c := range map[string]struct {
		args    []string
		timeout string
		code    string
		want    string
	}{
		"one of the group of callers is served": {[]string{"--user", "2000:2000", "--group-add", "60471"}, waitLimit.String(), "0", ""},
		"one outside of it is not":              {[]string{"--user", "2000:2000"}, "2s", "4", "permission denied"},
	} {
		t.Run(sentence, func(t *testing.T) {
			args := append([]string{"run", "--detach", "--network", "none", "--cgroup-parent=/" + e.cgroup, "--volume", volume + ":/tmp/open-crypto-broker:ro"}, c.args...)
			id := strings.TrimSpace(e.podman(append(args, "localhost/crypto-broker/cli:latest", "health", "--timeout", c.timeout, "--output", "text")...))
			code := strings.TrimSpace(e.podman("wait", id))
			got := e.run(t.Context(), folder, "podman", "logs", id)
			e.podman("rm", id)
			if code != c.code || !strings.Contains(got.stderr, c.want) {
				t.Errorf("exit code %s, %+v, want %s, %q", code, got, c.code, c.want)
			}
		})
	}

	changed := "- Name: Default\n  API: {HashData: {HashAlg: sha-256}}\n"
	if err := os.WriteFile(filepath.Join(folder, "profiles", "Profiles.yaml"), []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the changed profile is served", func(ctx context.Context) bool {
		got := e.run(ctx, folder, "podman", "exec", app, "/crypto-broker", "hash-data", "Welcome", "--output", "json")
		return got.code == 0 && strings.Contains(got.stdout, `"hashAlgorithm":"sha-256"`)
	})

	e.compose(folder, "down", "--volumes")
	if left := e.podman("ps", "--all", "--quiet") + e.podman("volume", "ls", "--quiet"); left != "" {
		t.Errorf("down leaves %q", left)
	}
}

// confined checks what the kernel lets a container's process do.
func confined(t *testing.T, e *engine, container string) {
	t.Helper()
	var told []struct {
		State      struct{ Pid int }
		HostConfig struct{ ReadonlyRootfs bool }
	}
	if err := json.Unmarshal([]byte(e.podman("inspect", container)), &told); err != nil || len(told) != 1 {
		t.Fatal(told, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", told[0].State.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(string(status), line) {
			t.Errorf("%s is not confined by %q:\n%s", container, line, status)
		}
	}
	if strings.Contains(string(status), "Uid:\t0") || !told[0].HostConfig.ReadonlyRootfs {
		t.Errorf("%s runs as root, or may write: %s", container, status)
	}
}
