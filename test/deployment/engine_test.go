// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// engine is Podman with all its files in a folder of the test. So it does not see the containers of the machine, and leaves nothing
// behind.
type engine struct {
	t      *testing.T
	folder string
	cgroup string // name of the control groups of all containers
	env    []string
}

// executed is the result of a program.
type executed struct {
	code           int
	stdout, stderr string
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	p := fetch(t)
	e := &engine{t: t, folder: temporary(t)}
	e.cgroup = filepath.Base(e.folder)
	libraries := filepath.Join(p.root, "usr/lib/x86_64-linux-gnu") + ":" + filepath.Join(p.root, "lib/x86_64-linux-gnu")
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	// They are started without the environment that says where libraries are.
	e.write("runc", 0o755, "#!/bin/sh\nexport LD_LIBRARY_PATH=%s\nexec %s --root %s \"$@\"\n", libraries, filepath.Join(p.root, "usr/sbin/runc"), filepath.Join(e.folder, "runtime"))
	e.write("conmon", 0o755, "#!/bin/sh\nexport LD_LIBRARY_PATH=%s\nexec %s \"$@\"\n", libraries, filepath.Join(p.root, "usr/bin/conmon"))
	e.write("home/.config/containers/policy.json", 0o644, `{"default": [{"type": "insecureAcceptAnything"}]}`)
	e.write("storage.conf", 0o644, "[storage]\ndriver = \"vfs\"\nrunroot = %q\ngraphroot = %q\n", filepath.Join(e.folder, "run"), filepath.Join(e.folder, "store"))
	e.write("containers.conf", 0o644, `[containers]
default_sysctls = []
default_ulimits = ["nofile=%d:%d", "nproc=1024:1024"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
conmon_path = [%q]
runtime = "runc"
tmp_dir = %q
volume_path = %q
[engine.runtimes]
runc = [%q]
[network]
network_backend = "cni"
network_config_dir = %q
`, files.Cur, files.Max, filepath.Join(e.folder, "conmon"), filepath.Join(e.folder, "state"),
		filepath.Join(e.folder, "volumes"), filepath.Join(e.folder, "runc"), filepath.Join(e.folder, "networks"))
	e.env = append(os.Environ(),
		"HOME="+filepath.Join(e.folder, "home"), "XDG_CONFIG_HOME=", "XDG_RUNTIME_DIR=", "TMPDIR="+e.folder,
		"CONTAINERS_CONF="+filepath.Join(e.folder, "containers.conf"), "CONTAINERS_STORAGE_CONF="+filepath.Join(e.folder, "storage.conf"),
		"LD_LIBRARY_PATH="+libraries, "PYTHONPATH="+p.python, "PATH="+filepath.Join(p.root, "usr/bin")+":"+os.Getenv("PATH"),
	)
	t.Cleanup(e.remove)
	return e
}

func (e *engine) write(name string, mode os.FileMode, format string, args ...any) {
	e.t.Helper()
	path := filepath.Join(e.folder, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, fmt.Appendf(nil, format, args...), mode)); err != nil {
		e.t.Fatal(err)
	}
}

// run runs a program with the engine's environment.
func (e *engine) run(ctx context.Context, folder string, args ...string) executed {
	program := exec.CommandContext(ctx, "env", args...) // podman finds it in the PATH of its own environment
	program.Dir, program.Env = folder, e.env
	var stdout, stderr bytes.Buffer
	program.Stdout, program.Stderr = &stdout, &stderr
	err := program.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return executed{-1, stdout.String(), err.Error()}
	}
	return executed{program.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// podman runs the engine; it has to succeed.
func (e *engine) podman(args ...string) string {
	e.t.Helper()
	got := e.run(e.t.Context(), e.folder, append([]string{"podman"}, args...)...)
	if got.code != 0 {
		e.t.Fatalf("podman %q: %+v", args, got)
	}
	return got.stdout
}

// compose runs a compose file of a folder; it has to succeed.
func (e *engine) compose(folder string, args ...string) {
	e.t.Helper()
	got := e.run(e.t.Context(), folder, append([]string{"python3", "-m", "podman_compose", "--podman-run-args=--cgroup-parent=/" + e.cgroup}, args...)...)
	if got.code != 0 {
		e.t.Fatalf("podman-compose %q: %+v", args, got)
	}
}

// remove ends and removes all containers and what they leave, and checks that.
func (e *engine) remove() {
	for _, args := range [][]string{{"rm", "--all", "--force", "--time", "0"}, {"volume", "rm", "--all", "--force"}, {"rmi", "--all", "--force"}} {
		if got := e.run(context.WithoutCancel(e.t.Context()), e.folder, append([]string{"podman"}, args...)...); got.code != 0 {
			e.t.Errorf("podman %q: %+v", args, got)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || bytes.Contains(mounts, []byte(e.folder)) {
		e.t.Errorf("mounts are left in %s: %v", e.folder, err)
	}
	// One hierarchy (version 2), or one for each controller.
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		groups, err := filepath.Glob(pattern + e.cgroup)
		if err != nil {
			e.t.Error(err)
		}
		for _, group := range groups {
			// A process that ended may be in its group for a moment more.
			eventually(e.t, "the control group "+group+" is empty", func(context.Context) bool { return removeGroups(group) == nil })
		}
	}
}

// removeGroups removes a control group with those below it.
func removeGroups(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeGroups(filepath.Join(path, entry.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(path)
}
