// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"
)

// manifest is an app manifest as version 3 of Cloud Foundry's API reads it: the
// fields of https://v3-apidocs.cloudfoundry.org (manifest schema) that apps of
// this kind have. Others are errors.
type manifest struct {
	Version      int           `yaml:"version"`
	Applications []application `yaml:"applications"`
}

type application struct {
	Name            string            `yaml:"name"`
	Instances       int               `yaml:"instances"`
	Memory          string            `yaml:"memory"`
	DiskQuota       string            `yaml:"disk_quota"`
	Stack           string            `yaml:"stack"`
	Buildpacks      []string          `yaml:"buildpacks"`
	NoRoute         bool              `yaml:"no-route"`
	HealthCheckType string            `yaml:"health-check-type"`
	Command         string            `yaml:"command"`
	Env             map[string]string `yaml:"env"`
	Sidecars        []sidecar         `yaml:"sidecars"`
}

type sidecar struct {
	Name         string   `yaml:"name"`
	ProcessTypes []string `yaml:"process_types"`
	Command      string   `yaml:"command"`
	Memory       string   `yaml:"memory"`
}

func readManifest(t *testing.T) application {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(guides, "cloud-foundry", "manifest.yml"))
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	var m manifest
	if err := decoder.Decode(&m); err != nil {
		t.Fatal(err)
	}
	if m.Version != 1 || len(m.Applications) != 1 || len(m.Applications[0].Sidecars) != 1 {
		t.Fatalf("the manifest is %+v, expected version 1 with one application that has one sidecar", m)
	}
	return m.Applications[0]
}

// container is a namespace with what a container of Cloud Foundry has: the app in
// /home/vcap/app, a /tmp of its own, and the user vcap.
type container struct {
	t      *testing.T
	folder string
	env    []string
	holder *exec.Cmd
}

// prepare makes the files of the container, and ends it with the test.
const prepare = `
mount -t tmpfs tmpfs /home
mkdir -p /home/vcap/app /home/vcap/tmp
mount --bind "$1" /home/vcap/app
mount -t tmpfs -o mode=1777 tmpfs /tmp
chown 2000:2000 /home/vcap /home/vcap/tmp
echo ready
exec cat
`

func newContainer(t *testing.T, app application) *container {
	t.Helper()
	c := &container{t: t, folder: temporary(t)}
	if err := os.Chmod(c.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	programs(t, c.folder)
	if err := os.CopyFS(filepath.Join(c.folder, "profiles"), os.DirFS(filepath.Join(guides, "cloud-foundry", "profiles"))); err != nil {
		t.Fatal(err)
	}
	c.env = []string{
		"HOME=/home/vcap/app", "USER=vcap", "TMPDIR=/home/vcap/tmp", "PATH=/bin:/usr/bin", "LANG=en_US.UTF-8", "PORT=8080",
		"MEMORY_LIMIT=" + app.Memory, "CF_INSTANCE_INDEX=0", "INSTANCE_INDEX=0", "VCAP_PLATFORM_OPTIONS={}",
	}
	for name, value := range app.Env {
		c.env = append(c.env, name+"="+value)
	}
	c.holder = exec.Command("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "sh", "-euc", prepare, "sh", c.folder)
	input, err := c.holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := c.holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.holder.Stderr = os.Stderr
	if err := c.holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(input.Close(), c.holder.Wait()); err != nil {
			t.Error(err)
		}
	})
	ready := make([]byte, len("ready\n"))
	if _, err := output.Read(ready); err != nil || string(ready) != "ready\n" {
		t.Fatalf("the container says %q, %v", ready, err)
	}
	return c
}

// process is a process in the container.
type process struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	log bytes.Buffer
}

// Write implements io.Writer.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(text)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// start starts a command of the manifest as the platform does: by a shell, in the
// folder of the app, as the user vcap. It has to end with exit code 0 when it is asked to end.
func (c *container) start(commandLine string) *process {
	c.t.Helper()
	p := &process{}
	p.cmd = exec.Command("nsenter", "--target", childOf(c.t, c.holder.Process.Pid), "--mount",
		"setpriv", "--reuid=2000", "--regid=2000", "--clear-groups", "--no-new-privs", "--bounding-set=-all", "bash", "-c", "cd /home/vcap/app && exec "+commandLine)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = c.env, p, p
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := errors.Join(p.cmd.Process.Signal(syscall.SIGTERM), p.cmd.Wait()); err != nil {
			c.t.Errorf("%s ended with %v", commandLine, err)
		}
		if c.t.Failed() {
			c.t.Logf("%s said:\n%s", commandLine, p.said())
		}
	})
	return p
}

// childOf is the process that another one has forked.
func childOf(t *testing.T, pid int) string {
	t.Helper()
	output, err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(output))
}

func TestTheManifestRunsABrokerBesideTheApp(t *testing.T) {
	app := readManifest(t)
	if app.Sidecars[0].Memory != "128M" || app.Memory != "256M" {
		t.Errorf("the broker may take %s of %s", app.Sidecars[0].Memory, app.Memory)
	}
	c := newContainer(t, app)
	client := c.start(app.Command) // waits for the broker, because the order of the starts is not defined
	broker := c.start(app.Sidecars[0].Command)
	eventually(t, "the app's calls are answered", func(context.Context) bool {
		return strings.Count(client.said(), `"hashValueHex":"`+digest) >= 2
	})
	for _, line := range []string{`"limit":134217728,`, `"profiles":"/home/vcap/app/profiles"`, `"fipsMode":"on"`} {
		if !strings.Contains(broker.said(), line) {
			t.Errorf("the broker did not log %s", line)
		}
	}
}
