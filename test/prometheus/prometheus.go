// SPDX-License-Identifier: Apache-2.0

// Package prometheus runs Debian's Prometheus and Alertmanager against a cluster of the demo or of the end-to-end tests.
package prometheus

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

//go:embed prometheus.yaml
var configuration string

// Find returns the path of Prometheus: the program in PATH, or else the program of Debian's package, which it downloads
// and unpacks into the cache folder. It does not install the package, so no service starts.
func Find(ctx context.Context, progress io.Writer, cache string) (string, error) {
	if found, err := exec.LookPath("prometheus"); err == nil {
		return found, nil
	}
	folder, err := unpack(ctx, progress, cache, "prometheus")
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "usr", "bin", "prometheus"), nil
}

// unpack returns the folder of Debian's package of a program that is not in PATH.
func unpack(ctx context.Context, progress io.Writer, cache, name string) (string, error) {
	folder, err := environment.DebianPackage(ctx, progress, cache, name)
	if err != nil {
		return "", fmt.Errorf("there is no %s in PATH, expected the program of Debian 12 or a newer one: %w", name, err)
	}
	return folder, nil
}

// Options are the tasks of Prometheus in addition to scraping the pods of a cluster.
type Options struct {
	// Interval is the time between two scrapes, and between two evaluations of rules.
	Interval time.Duration
	// Rules is a file of rules; empty: no rules.
	Rules string
	// Alertmanager receives the alerts. If it is nil, Prometheus sends no alerts.
	Alertmanager *Alertmanager
	// Others are addresses that are scraped as well.
	Others []string
}

// Server is a running Prometheus.
type Server struct {
	*process
	targets *targets // nil without a cluster
}

// Start runs Prometheus with its data and log in a folder, scraping a cluster unless kubeconfig is empty, and waits until it is
// ready.
func Start(ctx context.Context, program, folder, kubeconfig string, options Options) (*Server, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	list := filepath.Join(folder, "targets.json")
	content := strings.NewReplacer("${TARGETS}", list, "${INTERVAL}", options.Interval.String()).Replace(configuration)
	if len(options.Others) > 0 {
		content += fmt.Sprintf("  - job_name: others\n    static_configs: [{targets: [%s], labels: {cluster: demo}}]\n", strings.Join(options.Others, ", "))
	}
	if options.Rules != "" {
		content += fmt.Sprintf("rule_files: [%q]\n", options.Rules)
	}
	if options.Alertmanager != nil {
		content += fmt.Sprintf("alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}\n", strings.TrimPrefix(options.Alertmanager.URL, "http://"))
	}
	file := filepath.Join(folder, "prometheus.yaml")
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		return nil, err
	}
	var followed *targets
	if kubeconfig != "" {
		var err error
		if followed, err = followPods(kubeconfig, list); err != nil {
			return nil, err
		}
	}
	p, err := startProcess(ctx, "prometheus", program, folder, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--storage.tsdb.retention.time=1d")
	if err != nil {
		if followed != nil {
			err = errors.Join(err, followed.close())
		}
		return nil, err
	}
	return &Server{process: p, targets: followed}, nil
}

// Stop ends Prometheus and waits until it has ended.
func (s *Server) Stop() error {
	err := s.stop()
	if s.targets != nil {
		err = errors.Join(err, s.targets.close())
	}
	return err
}
