// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// auditPolicy records each request of the operator, at its end, and each of its watches at
// its beginning.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    users: ["` + environment.OperatorUser + `"]
  - level: None
`

// controlPlane is a kube-apiserver and its etcd.
type controlPlane struct {
	environment *envtest.Environment
	config      *rest.Config
	kubeconfig  string // path of a file
	auditLog    string // path of a file
	apiServer   int    // process
	etcd        int    // process
}

// startControlPlane starts an API server that records the requests of the operator, and an etcd that writes to the disk as in a
// real cluster.
func startControlPlane(dir string) (*controlPlane, error) {
	assets, err := apiserver.Assets()
	if err != nil {
		return nil, err
	}
	p := &controlPlane{auditLog: filepath.Join(dir, "audit.log"), kubeconfig: filepath.Join(dir, "admin.kubeconfig")}
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	p.environment = &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		ControlPlaneStartTimeout: 2 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	p.environment.ControlPlane.GetAPIServer().Configure().
		Set("advertise-address", apiServerAddress).
		Set("audit-policy-file", policy).
		Set("audit-log-path", p.auditLog).
		Set("audit-log-maxsize", "10000") // in MiB; so large that the file is never replaced
	if err := apiserver.Reserve(&p.environment.ControlPlane); err != nil {
		return nil, err
	}
	p.environment.ControlPlane.Etcd.Configure().Disable("unsafe-no-fsync")
	if p.config, err = p.environment.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the API server: %w", err), p.environment.Stop())
	}
	p.config.QPS = -1
	if err := p.find(); err != nil {
		return nil, errors.Join(err, p.environment.Stop())
	}
	return p, nil
}

// find writes the kubeconfig and finds the processes.
func (p *controlPlane) find() error {
	user, err := p.environment.AddUser(envtest.User{Name: "cluster-admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	content, err := user.KubeConfig()
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.kubeconfig, content, 0o600); err != nil {
		return err
	}
	if p.apiServer, err = childNamed("kube-apiserver"); err != nil {
		return err
	}
	p.etcd, err = childNamed("etcd")
	return err
}

// planeTimes are processor times.
type planeTimes struct{ apiServer, etcd time.Duration }

func (p *controlPlane) cpu() (t planeTimes, err error) {
	if t.apiServer, err = measurement.ProcessorTime(p.apiServer); err != nil {
		return t, err
	}
	t.etcd, err = measurement.ProcessorTime(p.etcd)
	return t, err
}

func (p *controlPlane) stop() error { return p.environment.Stop() }

// stored is what etcd wrote and holds, in bytes.
type stored struct {
	// written is the size of the data in the log of etcd: each version of each object once.
	written int64
	// held is the part of the database that is in use. It has old versions too, until
	// they are compacted.
	held int64
}

// Metrics of etcd.
const (
	etcdWritten = "etcd_disk_wal_write_bytes_total"
	etcdHeld    = "etcd_mvcc_db_total_size_in_use_in_bytes"
)

func (p *controlPlane) stored(ctx context.Context) (stored, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.environment.ControlPlane.Etcd.URL.JoinPath("metrics").String(), nil)
	if err != nil {
		return stored{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return stored{}, fmt.Errorf("read the metrics of etcd: %w", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return stored{}, fmt.Errorf("read the metrics of etcd: %w", err)
	}
	var found [2]int64
	for i, name := range []string{etcdWritten, etcdHeld} {
		family := families[name]
		if family == nil || len(family.Metric) != 1 {
			return stored{}, fmt.Errorf("etcd has no metric %s", name)
		}
		// A metric is a gauge, a counter or untyped; the other two are 0.
		m := family.Metric[0]
		found[i] = int64(m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue())
	}
	return stored{found[0], found[1]}, nil
}
