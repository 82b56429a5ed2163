// SPDX-License-Identifier: Apache-2.0

// Package prometheus runs Debian's Prometheus against a cluster of the demo or of the end-to-end tests.
package prometheus

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
	folder, err := environment.DebianPackage(ctx, progress, cache, "prometheus")
	if err != nil {
		return "", fmt.Errorf("there is no prometheus in PATH, expected Prometheus 2.41 or newer: %w", err)
	}
	return filepath.Join(folder, "usr", "bin", "prometheus"), nil
}

// Server is a running Prometheus.
type Server struct {
	// URL is the address of its HTTP API, on the loopback interface.
	URL     string
	targets *targets
	command *exec.Cmd
	exited  chan error
	log     *os.File
}

// Start runs Prometheus with its data and log in a folder, scraping a cluster, and waits until it is ready.
func Start(ctx context.Context, program, folder, kubeconfig string, interval time.Duration) (*Server, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	list := filepath.Join(folder, "targets.json")
	content := strings.NewReplacer("${TARGETS}", list, "${INTERVAL}", interval.String()).Replace(configuration)
	file := filepath.Join(folder, "prometheus.yaml")
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	followed, err := followPods(kubeconfig, list)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(folder, "prometheus.log"))
	if err != nil {
		return nil, errors.Join(err, followed.close())
	}
	s := &Server{URL: "http://" + address, exited: make(chan error, 1), log: log, targets: followed}
	s.command = exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--storage.tsdb.retention.time=1d", "--web.listen-address="+address)
	s.command.Stdout, s.command.Stderr = log, log
	if err := s.command.Start(); err != nil {
		return nil, errors.Join(err, log.Close(), followed.close())
	}
	go func() { s.exited <- s.command.Wait() }()
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// freeAddress returns an address on the loopback interface on which nobody listens.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/-/ready", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("it answers %s", response.Status)
		}
		select {
		case exit := <-s.exited:
			s.exited <- exit
			return errors.Join(fmt.Errorf("prometheus ended: %s", s.lastLog()), exit)
		case <-ctx.Done():
			return fmt.Errorf("prometheus was not ready within 30 s: %w: %s", err, s.lastLog())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// lastLog returns the end of Prometheus' log.
func (s *Server) lastLog() string {
	content, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(content[max(0, len(content)-2000):]))
}

// Stop ends Prometheus and waits until it has ended.
func (s *Server) Stop() error {
	return errors.Join(s.stop(), s.log.Close(), s.targets.close())
}

func (s *Server) stop() error {
	select {
	case err := <-s.exited:
		return err // it had ended by itself
	default:
	}
	if err := s.command.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	select {
	case err := <-s.exited:
		return err
	case <-time.After(20 * time.Second):
		err := s.command.Process.Kill()
		return errors.Join(errors.New("prometheus did not end within 20 s and was killed"), err, <-s.exited)
	}
}
