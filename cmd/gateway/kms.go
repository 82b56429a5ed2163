// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/kmsplugin"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// kmsConfig has the settings of the command line of gateway kms.
type kmsConfig struct {
	key           string
	oldKeys       []string
	providersDir  string
	socketDir     string
	socketGroup   int
	statusAddress string
	tlsProvider   string
	logLevel      string

	// level is the parsed logLevel.
	level slog.Level
}

// flags binds the command line to the config, with the defaults.
func (c *kmsConfig) flags() *pflag.FlagSet {
	f := program.Flags("gateway kms")
	f.StringVar(&c.key, "key", "", "`key` that wraps the keys of the API server: the name of its provider, a slash and its id, such as bao/cluster-secrets; required")
	f.StringSliceVar(&c.oldKeys, "old-keys", nil, "`keys` that wrapped keys of the API server before, and only unwrap now; versions of one key need no entry")
	f.StringVar(&c.providersDir, "key-providers-dir", "/etc/crypto-broker/key-providers", "`directory` of Providers.yaml and the credentials of the key providers; followed")
	f.StringVar(&c.socketDir, "socket-dir", "/run/crypto-broker-kms", "`directory` of the socket for the API server; made if it does not exist")
	f.IntVar(&c.socketGroup, "socket-group", -1, "`id` of the group that may use the socket; -1 for only the own user and root")
	f.StringVar(&c.statusAddress, "status-bind-address", "127.0.0.1:8082", "`address` of the HTTP port with /healthz, /readyz and /metrics; 0 is off")
	f.StringVar(&c.tlsProvider, "tls-provider", tlsprovider.Go, "`provider` of TLS for the connections to key managers: go, or openssl for the OpenSSL of the system, which only programs of make build-openssl have")
	f.StringVar(&c.logLevel, "log-level", "info", "log `level`: debug, info, warn or error")
	return f
}

// parseKMS reads the command line and checks it. The error has a sentence for each problem.
func parseKMS(args []string) (*kmsConfig, error) {
	c := &kmsConfig{}
	f := c.flags()
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q, expected flags only", f.Arg(0))
	}
	return c, c.check()
}

func (c *kmsConfig) check() error {
	var problems []error
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	if c.key == "" {
		expect(false, `--key is "", expected the name of a key provider, a slash and the id of a key, such as bao/cluster-secrets`)
	} else if err := (&kmsplugin.Options{Key: c.key, OldKeys: c.oldKeys}).Validate(); err != nil {
		expect(false, "--key and --old-keys: %w", err)
	}
	expect(filepath.IsAbs(c.providersDir), "--key-providers-dir is %q, expected an absolute path", c.providersDir)
	sockets := c.sockets()
	if err := sockets.Validate(); err != nil {
		expect(false, "--socket-dir: %w", err)
	}
	expect(c.socketGroup >= -1, "--socket-group is %d, expected the id of a group, or -1 for none", c.socketGroup)
	expect(c.statusAddress == "0" || isAddress(c.statusAddress), `--status-bind-address is %q, expected an address with a port such as "127.0.0.1:8082", or 0 for none`, c.statusAddress)
	expect(c.tlsProvider == tlsprovider.Go || c.tlsProvider == tlsprovider.OpenSSL, "--tls-provider is %q, expected %s or %s", c.tlsProvider, tlsprovider.Go, tlsprovider.OpenSSL)
	var err error
	if c.level, err = parseLevel(c.logLevel); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

func (c *kmsConfig) sockets() unixsocket.Options {
	return unixsocket.Options{Dir: c.socketDir, Group: c.socketGroup}
}

// runKMS runs gateway kms and returns the exit code.
func runKMS(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parseKMS(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprint(stdout, kmsUsage())
		return program.ExitOK
	}
	if err != nil {
		program.LastSentence(stderr, "gateway kms: %v\nSee gateway kms --help.\n", err)
		return program.ExitUsage
	}
	logger, endLog := newLogger(c.level, stderr)
	defer endLog()
	if err = protect(c.tlsProvider, logger); err == nil {
		err = serveKMS(ctx, c, keyProviders, logger)
	}
	if err != nil {
		program.LastSentence(stderr, "gateway kms: %v\n", err)
		return program.ExitFailed
	}
	endLog()
	logger.Info("stopped")
	return program.ExitOK
}

// serveKMS serves the API server until ctx ends, which is no error. It does not wait for the key
// providers, because the API server needs the socket to start. The status tells the API server
// about problems.
func serveKMS(ctx context.Context, c *kmsConfig, types providers.Types, logger *slog.Logger) (err error) {
	// The key providers last longer than ctx: calls need them until the server has ended.
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	stack := keys.NewStack(nil)
	metrics := kmsplugin.NewMetrics(durationBuckets)
	plugin := kmsplugin.New(kmsplugin.Options{Keys: stack, Key: c.key, OldKeys: c.oldKeys, Logger: logger, Metrics: metrics})
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	describeProgram(registry)
	followed, err := providers.Follow(lasting, c.providersDir, types, func(all map[string]keys.Provider) {
		stack.Use(all)
		plugin.Forget()
	}, providers.LogTo(logger, c.providersDir))
	if err != nil {
		return err
	}
	defer func() {
		stop()
		followed.Wait()
	}()
	sockets, err := unixsocket.Listen(c.sockets())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sockets.Close()) }()

	group, running := errgroup.WithContext(ctx)
	status := newStatus(http.NewServeMux(), plugin.Ready, registry, logger)
	if err := status.listen(ctx, c.statusAddress); err != nil {
		return err
	}
	if status.listener != nil {
		logger.Info("the status port is open", "address", status.listener.Addr().String())
	}
	group.Go(status.serve)
	group.Go(func() error {
		<-running.Done()
		return status.Close()
	})
	group.Go(func() error { return kmsplugin.Serve(running, kmsplugin.NewServer(plugin), sockets.Listeners()[0]) })
	logger.Info("listening", "sockets", sockets.Paths(), "key", c.key, "oldKeys", c.oldKeys)
	return group.Wait()
}

func kmsUsage() string {
	return `Serves the API server's encryption of Secrets in etcd under a key of a key manager: a KMS plugin, version v2,
on a Unix socket (https://kubernetes.io/docs/tasks/administer-cluster/kms-provider). It needs no cluster, so it can start
before the API server.

Usage:
  gateway kms --key PROVIDER/ID [flags]    run until SIGTERM, SIGINT or SIGHUP

The socket is there at once. While the key cannot be used, the status of the plugin says why in one sentence, and
calls fail within 2 seconds. A wrong value ends the program with exit code 2 and a sentence that says what was
expected.

Flags:
` + (&kmsConfig{}).flags().FlagUsagesWrapped(program.HelpWidth)
}
