// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmsfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
	"github.com/crypto-broker/crypto-broker-operator/cmd/broker/internal/resources"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/coredumps"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

func serveCommand(ctx context.Context, args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) error {
	var c config
	if err := c.read(args, lookup, stdout); err != nil {
		return err
	}
	logger, endLog := newLogger(ctx, &c, stdout, stderr)
	defer endLog()
	if err := coredumps.Forbid(); err != nil { // this has to happen before a key is in memory
		logger.Warn("cannot turn core dumps off: a dump could contain keys", "error", err)
	}
	warnOfVariables(os.Environ(), (&config{}).settings(), logger)
	c.choosesProcessors = resources.UseProcessors(os.DirFS("/"), lookup, logger) // this has to happen before anything counts the processors
	if err := checkFIPS(engine.FIPS(), c.requireFIPS); err != nil {
		return err
	}
	if err := tlsprovider.Use(c.tlsProvider, c.requireFIPS); err != nil { // this has to happen before the first TLS client is made
		return fmt.Errorf("--%s: %w", tlsProviderFlag, err)
	}
	tracer, err := c.useTracing(ctx, stdout, os.Environ(), logger)
	if err != nil {
		return err
	}
	if err := serve(ctx, &c, stderr, logger, tracer); err != nil {
		return err
	}
	endLog()
	logger.Info("stopped")
	return nil
}

// serve runs a broker until ctx ends, which is no error.
func serve(ctx context.Context, c *config, stderr io.Writer, logger *slog.Logger, tracer *tracing.Tracer) (err error) {
	connections, err := resources.ConnectionLimit(len(c.callers))
	if err != nil {
		return err
	}
	metrics := telemetry.NewMetrics(program.Version(version))
	computing := engine.FIPS()
	metrics.FIPS(computing.Module, computing.Mode, c.requireFIPS)
	metrics.TLS(tlsprovider.Current())
	watching, stopWatching := context.WithCancel(context.Background())
	defer stopWatching()
	options := []server.Option{server.WithMaxStreams(c.maxStreams), server.WithMaxConnections(connections), server.WithTracer(tracer)}
	if tracer != nil {
		metrics.Spans(tracer)
	}
	records, endRecords, err := c.useAudit(stderr, metrics, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endRecords()) }()
	options = append(options, server.WithAudit(records))
	use := &keyUse{logger: logger}
	stack, closeKeys, err := c.useKeys(watching, metrics, use, logger)
	if err != nil {
		return err
	}
	defer func() {
		stopWatching()
		closeKeys()
	}()
	if stack != nil {
		options = append(options, server.WithKeys(stack))
	}
	sharing, err := c.useRedis(stack, metrics, logger)
	if err != nil {
		return err
	}
	if sharing != nil {
		options = append(options, sharing)
	}
	if c.kmsDir != "" {
		managers := kmsfile.New(c.kmsDir)
		defer managers.Close()
		options = append(options, server.WithKeyManagers(managers.Provider))
	}
	if c.development || c.environment == "dev" {
		options = append(options, server.WithDevelopmentService())
	}
	if c.choosesProcessors {
		options = append(options, server.WithOneProcessorForQuickCalls())
	}
	if inFlight := resources.UseMemory(os.DirFS("/"), c.memoryLimit, logger); inFlight > 0 {
		options = append(options, server.WithMemory(inFlight))
	}
	sessions, err := c.sessions.listen(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeListener(sessions)) }()
	if sessions != nil {
		options = append(options, server.WithSessionGateway(sessions, c.sessions.options()))
	}
	broker := server.New(logger, metrics, options...)

	watchOptions := []directory.Option{
		directory.WithPollInterval(c.pollInterval),
		directory.WithCompileOptions(c.compileOptions()...),
		directory.WithObserver(func(event directory.Event) {
			if event.Set != nil {
				broker.Use(event.Set, event.Revision)
			}
			metrics.Looked(event)
			logLook(logger, event)
			if event.Set != nil {
				use.useSet(event.Set)
			}
		}),
		directory.WithWatchProblem(func(problem error) { logWatch(logger, c.profilesDir, problem) }),
	}
	if len(c.trust.Keys) > 0 {
		watchOptions = append(watchOptions, directory.WithTrust(c.trust, c.stateDir))
	}
	source, err := directory.Watch(watching, c.profilesDir, watchOptions...)
	if err != nil {
		return err
	}
	defer func() {
		stopWatching()
		source.Wait()
	}()

	sockets, err := unixsocket.Listen(c.sockets())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sockets.Close()) }()

	var stopping atomic.Bool
	gone := goneSocket(sockets.Listeners(), logger)
	status, err := listenStatus(ctx, c.statusAddress, &telemetry.Status{
		Metrics: metrics, Profiles: source.State, Logger: logger, Crowded: broker.UseProcessors,
		Ready: func() string {
			switch {
			case stopping.Load():
				return "shutting down"
			case !broker.Serving():
				return string(source.State().Reason)
			}
			return gone()
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, status.close()) }()

	// From here on a failure of one part stops the others.
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return broker.Serve(sockets) })
	group.Go(status.serve)
	group.Go(func() error {
		<-running.Done()
		stopping.Store(true)
		logger.Info("shutting down", "timeout", c.shutdownTimeout.String())
		deadline, cancel := context.WithTimeout(context.Background(), c.shutdownTimeout)
		defer cancel()
		if err := broker.Shutdown(deadline); err != nil {
			logger.Warn("canceled the calls that were not finished at the shutdown timeout", "timeout", c.shutdownTimeout.String())
		}
		endTracing(deadline, tracer, logger)
		return status.close()
	})
	if err := resources.DropStartPages(); err != nil {
		logger.Debug("cannot free the memory that was used only at the start", "error", err)
	}
	logger.Info("listening", "sockets", sockets.Paths(), "status", status.address(), "sessionGateway", addressOf(sessions),
		"profiles", c.profilesDir, "reason", source.State().Reason,
		"processors", runtime.GOMAXPROCS(0), "connections", connections, "fipsModule", computing.Module, "fipsMode", computing.Mode, "fipsRequired", c.requireFIPS)
	return group.Wait()
}

// goneSocket returns a function that returns which socket clients cannot find any more, or an empty text. The first time
// that there is one, the function logs what to do.
func goneSocket(listeners []*unixsocket.Listener, logger *slog.Logger) func() string {
	var once sync.Once
	return func() string {
		for _, l := range listeners {
			if l.Gone() {
				once.Do(func() {
					logger.Error("clients cannot find a socket any more: its file or a directory above it was removed or replaced; restart the broker", "socket", l.Path())
				})
				return "the file of the socket " + l.Path() + " is gone"
			}
		}
		return ""
	}
}

// statusPort is the HTTP server of the status port. It does nothing if the port is off.
type statusPort struct {
	server   *telemetry.Port
	listener net.Listener
}

func listenStatus(ctx context.Context, address string, status *telemetry.Status) (*statusPort, error) {
	if address == "" {
		return &statusPort{}, nil
	}
	// Keep-alive packets are useless, because idle connections are closed after a
	// minute, and they cost four system calls for each connection.
	config := net.ListenConfig{KeepAlive: -1}
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open the status port %s: %w", address, err)
	}
	return &statusPort{status.Server(), listener}, nil
}

func (p *statusPort) address() string { return addressOf(p.listener) }

// addressOf returns the address of a listener, empty for none.
func addressOf(listener net.Listener) string {
	if listener == nil {
		return ""
	}
	return listener.Addr().String()
}

func (p *statusPort) serve() error {
	if p.server == nil {
		return nil
	}
	if err := p.server.Serve(p.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the status port: %w", err)
	}
	return nil
}

func (p *statusPort) close() error {
	if p.server == nil {
		return nil
	}
	if err := p.server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close the status port: %w", err)
	}
	return nil
}
