// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/crypto-broker/crypto-broker-operator/broker/connlimit"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/tuning"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/coredumps"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/logs"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/logs/libraries"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/federation"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/keyring"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/regopolicy"
	"github.com/crypto-broker/crypto-broker-operator/webhook/certificates"
)

// keyAccessCommand is the command that runs the key access service.
const keyAccessCommand = "key-access"

const (
	// keyAccessRetry is the time between attempts to get the keys of issuers after the start.
	keyAccessRetry = time.Second
	// keyAccessPatience is how long the service waits for the keys of all issuers before it is ready without some of them.
	keyAccessPatience = time.Minute
)

// keyAccessAnswer is the time after which an answer cannot be written any more, and keyAccessTime the time for the work on one.
const keyAccessAnswer, keyAccessTime = time.Minute, 50 * time.Second

// keyAccess is a key access service that is about to run.
type keyAccess struct {
	config            *keyAccessFile
	logger            *slog.Logger
	managers          *keyManagers
	keys              *keyring.Directory
	verifier          *caller.Verifier
	peers             *federation.Peers       // nil if there are none
	policies          *accesspolicy.Directory // nil if there are none
	cluster           *clusterObjects         // nil without resources
	endAudit          func() error
	certificates      *certificates.Mounted // nil without TLS
	connections       *connlimit.Limit
	server            *http.Server
	listener          net.Listener
	status            *statusServer
	issuers, stopping atomic.Bool
	// patience is keyAccessPatience. Tests set another time.
	patience time.Duration
}

// runKeyAccess is the command without its process. It returns the exit code.
func runKeyAccess(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := program.Flags("gateway " + keyAccessCommand)
	file := flags.String("config", "", "`file` with the configuration in YAML; required")
	rego := flags.Bool("rego", false, "permit policies in Rego in addition to those in CEL")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(stdout, "Runs a key access service for OpenTDF until SIGTERM, SIGINT or SIGHUP. docs/key-access.md has the configuration.\n\nFlags:\n%s", flags.FlagUsagesWrapped(program.HelpWidth))
		return program.ExitOK
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q, expected flags only", flags.Arg(0))
	case err == nil && *file == "":
		err = errors.New("--config is empty, expected the file with the configuration")
	}
	var config *keyAccessFile
	if err == nil {
		config, err = readKeyAccessFile(*file)
	}
	if err == nil && *rego {
		config.modules = regopolicy.Compile
	}
	if err != nil {
		program.LastSentence(stderr, "gateway %s: %v\nSee gateway %s --help.\n", keyAccessCommand, err, keyAccessCommand)
		return program.ExitUsage
	}
	handler, endLog := logs.New(logs.Options{To: stderr, Format: logs.JSON, Level: slog.LevelInfo, Component: "gateway", Version: program.Version(version)})
	defer endLog()
	libraries.Use(handler)
	logger := slog.New(handler)
	tuning.EaseCollector(debug.SetMemoryLimit(-1)) // reads the limit
	if err := coredumps.Forbid(); err != nil {     // this has to happen before a key is in memory
		logger.Warn("cannot turn core dumps off: a dump could contain keys", "error", err)
	}
	if err := operateKeyAccess(ctx, config, stderr, logger); err != nil {
		program.LastSentence(stderr, "gateway %s: %v\n", keyAccessCommand, err)
		return program.ExitFailed
	}
	endLog()
	logger.Info("stopped")
	return program.ExitOK
}

// operateKeyAccess runs a service until ctx ends, which is no error.
func operateKeyAccess(ctx context.Context, config *keyAccessFile, stderr io.Writer, logger *slog.Logger) error {
	managers, err := newKeyManagers(ctx, config, logger)
	if err != nil {
		return err
	}
	defer managers.close()
	k, err := newKeyAccess(ctx, config, managers, stderr, logger)
	if err != nil {
		return err
	}
	return errors.Join(k.run(ctx), k.endAudit())
}

// newKeyAccess connects the parts of a service, and opens its ports.
func newKeyAccess(ctx context.Context, config *keyAccessFile, managers *keyManagers, stderr io.Writer, logger *slog.Logger) (*keyAccess, error) {
	k := &keyAccess{patience: keyAccessPatience, config: config, logger: logger, managers: managers, connections: connlimit.New(config.Limits.Connections)}
	var err error
	if k.keys, err = keyring.Open(config.KeyDir, k.managers.finder(), k.keysChanged); err != nil {
		return nil, err
	}
	k.warnOfPending(k.keys.Ring())
	callers, err := config.callers()
	if err != nil {
		return nil, err
	}
	callers.Log = logger
	if k.verifier, err = caller.New(callers); err != nil {
		return nil, fmt.Errorf("issuers: %w", err)
	}
	rates, shedder, err := config.loads()
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	describeProgram(registry)
	_, peerShedder, err := config.loads()
	if err != nil {
		return nil, err
	}
	if k.peers, err = config.peers(logger, newPeerMetrics(), registry); err != nil {
		return nil, fmt.Errorf("federation: %w", err)
	}
	if config.Cluster != nil {
		if k.cluster, err = k.newClusterObjects(callers.Issuers); err != nil {
			return nil, err
		}
	}
	authorizer, err := k.newAuthorizer(stderr, registry)
	if err != nil {
		return nil, err
	}
	newKeyManagerMetrics(registry, managers)
	metrics := newKeyAccessMetrics(registry, k.keys.Ring, k.verifier, shedder)
	service := keyaccess.New(keyaccess.Options{
		URL: config.URL, Issuer: config.Issuers[0].URL, Keys: k.keys.Ring, Verifier: k.verifier, Authorizer: authorizer,
		Limits: config.limits(), Rates: rates, Shedder: shedder, Peers: k.peers, PeerShedder: peerShedder, FIPS: config.FIPS,
		DataKeys: k.managers.kept(), Providers: k.managers.generation, Observer: metrics, Logger: logger,
	})
	errorLog := slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	k.server = &http.Server{
		Handler: service.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: keyAccessAnswer, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: errorLog, Protocols: &http.Protocols{}, ConnState: k.connections.Changed,
		// The default of a stream is as much as a connection has here.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 100, MaxReceiveBufferPerStream: 128 << 10, MaxReceiveBufferPerConnection: 512 << 10},
	}
	k.server.Protocols.SetHTTP1(true)
	k.server.Protocols.SetHTTP2(true)
	k.server.Protocols.SetUnencryptedHTTP2(config.InsecurePlaintext)
	if !config.InsecurePlaintext {
		if k.certificates, err = certificates.NewMounted(config.CertificateDir); err != nil {
			return nil, err
		}
		k.server.TLSConfig = &tls.Config{}
		k.certificates.TLSOption(k.server.TLSConfig)
	}
	k.status = newStatus(k.statusPaths(), k.ready, registry, logger)
	var network net.ListenConfig
	if k.listener, err = network.Listen(ctx, "tcp", config.BindAddress); err != nil {
		return nil, fmt.Errorf("open the port for clients %s: %w", config.BindAddress, err)
	}
	if err := k.status.listen(ctx, config.StatusBindAddress); err != nil {
		return nil, errors.Join(err, k.listener.Close())
	}
	return k, nil
}

// keysChanged implements the observer of [keyring.Open].
func (k *keyAccess) keysChanged(ring *keyring.Ring, err error) {
	if err != nil {
		k.logger.Error("keys not replaced: the new keys cannot be used", "error", err)
		return
	}
	k.managers.forget()
	k.logger.Info("keys changed", "keys", ring.Len(), "algorithms", ring.Algorithms())
	k.warnOfPending(ring)
}

// warnOfPending logs which keys are not there yet.
func (k *keyAccess) warnOfPending(ring *keyring.Ring) {
	for name, why := range ring.Pending() {
		k.logger.Warn("a key cannot be used until its key manager gives its public key; trying again every ten seconds", "key", name, "error", why)
	}
}

// run serves until ctx ends, which is no error. Calls that have begun may then end.
func (k *keyAccess) run(ctx context.Context) error {
	defer k.verifier.Close()
	if k.peers != nil {
		defer k.peers.Close()
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { k.keys.Run(running); return nil })
	group.Go(func() error { return k.fetchIssuers(running) })
	if k.policies != nil {
		group.Go(func() error { k.policies.Run(running); return nil })
	}
	if k.cluster != nil {
		k.cluster.follow(running, group)
	}
	if k.certificates != nil {
		group.Go(func() error { return k.certificates.Start(running) })
	}
	group.Go(func() error {
		if !k.cluster.await(running) { // no data key is released before the policies are known
			return k.listener.Close()
		}
		return served(k.serve())
	})
	group.Go(k.status.serve)
	group.Go(func() error {
		<-running.Done()
		k.stopping.Store(true)
		deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		k.connections.CloseUnused()
		return errors.Join(k.server.Shutdown(deadline), k.status.Close())
	})
	k.logger.Info("listening", "address", k.listener.Addr().String(), "url", k.config.URL,
		"keys", k.keys.Ring().Len(), "algorithms", k.keys.Ring().Algorithms())
	if k.config.FIPS {
		k.logger.Warn(`rsa keys are off because FIPS 140-3 is required: OpenTDF uses them with RSA-OAEP and SHA-1, for the key type "wrapped" and for clients`)
	}
	if k.config.InsecurePlaintext {
		k.logger.Warn("tokens and requests are not encrypted on the way to the service, because of insecurePlaintext")
	}
	if k.config.Access.AllowAllAuthenticated {
		k.logger.Warn("every caller whose token is valid may have every data key, because of allowAllAuthenticated")
	}
	return group.Wait()
}

func (k *keyAccess) serve() error {
	listener := k.connections.Listener(k.listener)
	if k.certificates == nil {
		return k.server.Serve(listener)
	}
	return k.server.ServeTLS(listener, "", "")
}

// served returns the error of a server that has ended, unless it was told to end.
func served(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// fetchIssuers gets the keys of the issuers, so that the service becomes ready. It goes on after that until it has the keys of all.
func (k *keyAccess) fetchIssuers(ctx context.Context) error {
	retry := time.NewTicker(keyAccessRetry)
	defer retry.Stop()
	began := time.Now()
	for reported := false; ; {
		known, err := k.verifier.Fetch(ctx)
		if err == nil {
			k.issuers.Store(true)
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		if !reported {
			k.logger.Warn("the keys of issuers are missing; trying again each second", "error", err)
			reported = true
		}
		if known > 0 && time.Since(began) >= k.patience && !k.issuers.Swap(true) {
			k.logger.Warn("the service is ready without the keys of some issuers, whose callers get 503", "error", err)
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// ready returns the empty string if the service serves, else what is missing.
func (k *keyAccess) ready() string {
	switch {
	case k.stopping.Load():
		return "shutting down"
	case !k.issuers.Load():
		return "the keys of the issuers are not read yet"
	}
	if missing := pendingKey(k.keys.Ring()); missing != "" {
		return missing
	}
	if k.cluster != nil && k.cluster.Set() == nil {
		return k.cluster.Missing()
	}
	if k.certificates != nil {
		if err := k.certificates.Ready(nil); err != nil {
			return err.Error()
		}
	}
	return ""
}
