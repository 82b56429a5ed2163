// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
)

// Names of the ways to make a call.
const (
	inProcess   = "in-process"
	plain       = "plain"
	multiplexed = "multiplexed"
	streamed    = "stream"
	floor       = "floor"
	unary       = "unary"
	exchange    = "exchange"
	library     = "library"
	inPod       = "injected"
	audited     = "audit"
)

// brokerWays are the ways that call a broker.
var brokerWays = []string{unary, exchange, library, inPod, audited}

func wayNames() []string {
	return append([]string{inProcess, plain, multiplexed, streamed, floor}, brokerWays...)
}

var waysAbout = map[string]string{
	inProcess:   "operation in process",
	plain:       "plain Unix socket",
	multiplexed: "bound: one multiplexed connection",
	streamed:    "bound of gRPC: one bare stream",
	floor:       "bare gRPC server",
	unary:       "broker",
	exchange:    "broker, `Exchange`",
	library:     "broker, Go client",
	inPod:       "broker as injected",
	audited:     "broker with audit records",

	earlier + unary:    "broker before",
	earlier + exchange: "broker before, `Exchange`",
	earlier + library:  "broker before, Go client",
	earlier + inPod:    "broker before, as injected",
	earlier + audited:  "broker before, with audit records",
}

// earlier begins the names of ways that call the broker of --before.
const earlier = "before-"

// withEarlier returns the ways, and after each way that calls the broker the same way to
// the broker of --before.
func withEarlier(names []string) []string {
	var all []string
	for _, name := range names {
		all = append(all, name)
		if slices.Contains(brokerWays, name) {
			all = append(all, earlier+name)
		}
	}
	return all
}

// call makes one call. caller is the number of the caller, of those that call at the same
// time.
type call func(ctx context.Context, caller int) error

// way is a way to make the calls of one load.
type way struct {
	name   string
	call   call
	server *process // nil if the calls are made in this process
	close  func() error
}

// has reports whether the calls of a load can be made in a way.
func has(name string, l *load) bool {
	name = strings.TrimPrefix(name, earlier)
	if l.health != nil {
		return name == floor || name == unary || name == library || name == inPod
	}
	return true
}

// open starts the server of a way and connects to it.
func open(ctx context.Context, o options, p *programs, name string, l *load) (_ *way, err error) {
	w := &way{name: name, close: func() error { return nil }}
	switch name {
	case inProcess:
		w.call = l.inProcess
		return w, nil
	case floor:
		w.server, err = startFloor(o, p, "grpc", 0)
	case plain:
		w.server, err = startFloor(o, p, "framed", 0)
	case multiplexed:
		w.server, err = startFloor(o, p, "multiplexed", 0)
	case streamed:
		w.server, err = startFloor(o, p, "stream", 0)
	default:
		programs := *p
		if strings.HasPrefix(name, earlier) {
			programs.broker = o.before
		}
		as := withEverything
		switch strings.TrimPrefix(name, earlier) {
		case inPod:
			as = asInjected
		case audited:
			as = withRecords
		}
		w.server, _, err = startBroker(ctx, o, &programs, as)
	}
	if err != nil {
		return nil, err
	}
	connected, err := connectTo(w.server, strings.TrimPrefix(name, earlier), l)
	if err != nil {
		return nil, errors.Join(err, w.server.stop())
	}
	connected.name = name
	return connected, nil
}

// connectTo connects to a running server.
func connectTo(server *process, name string, l *load) (*way, error) {
	w := &way{name: name, server: server}
	if name == library {
		client, err := cryptobroker.New(cryptobroker.WithSocket(server.socket))
		if err != nil {
			return nil, err
		}
		w.call = libraryCall(client, l)
		w.close = func() error {
			ending, cancel := context.WithTimeout(context.Background(), stopLimit)
			defer cancel()
			return client.Close(ending)
		}
		return w, nil
	}
	if dial := framedDials[name]; dial != nil {
		var err error
		w.call, w.close, err = framedCall(server.socket, l, dial)
		return w, err
	}
	conn, err := dial(server.socket)
	if err != nil {
		return nil, err
	}
	w.call, w.close = unaryCall(conn, l), conn.Close
	if name == exchange {
		stream, err := newStream(conn)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		w.call = stream.call(l)
		w.close = func() error { return errors.Join(stream.close(), conn.Close()) }
	}
	return w, nil
}

// end closes the connections and stops the server.
func (w *way) end() error {
	err := w.close()
	if w.server != nil {
		err = errors.Join(err, w.server.stop())
	}
	return err
}

// dial connects like clients that need speed: with windows of a fixed size.
func dial(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStaticStreamWindowSize(1<<20), grpc.WithStaticConnWindowSize(1<<20))
}

// unaryCall makes calls with the generated stubs.
func unaryCall(conn *grpc.ClientConn, l *load) call {
	client := v1.NewCryptoServiceClient(conn)
	switch {
	case l.hash != nil:
		return func(ctx context.Context, _ int) error {
			reply, err := client.HashData(ctx, l.hash)
			if err != nil {
				return err
			}
			return l.checkHash(reply)
		}
	case l.certificate != nil:
		return func(ctx context.Context, _ int) error {
			reply, err := client.SignCertificate(ctx, l.certificate)
			return errors.Join(err, checkLength("a certificate", len(reply.GetDer()), 200))
		}
	case l.encrypt != nil:
		return func(ctx context.Context, _ int) error {
			reply, err := client.EncryptData(ctx, l.encrypt)
			return errors.Join(err, checkLength("a ciphertext", len(reply.GetCiphertext()), len(l.encrypt.GetPlaintext())))
		}
	}
	health := healthpb.NewHealthClient(conn)
	return func(ctx context.Context, _ int) error {
		reply, err := health.Check(ctx, l.health)
		if err == nil && reply.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			err = fmt.Errorf("the health is %s", reply.GetStatus())
		}
		return err
	}
}

// libraryCall makes calls with the client library of this project.
func libraryCall(client *cryptobroker.Client, l *load) call {
	switch {
	case l.hash != nil:
		return func(ctx context.Context, _ int) error {
			result, err := client.HashData(ctx, cryptobroker.HashDataRequest{Profile: l.hash.GetProfile(), Input: l.hash.GetInput()})
			return errors.Join(err, l.checkDigest(result.Digest))
		}
	case l.certificate != nil:
		r := l.certificate
		request := cryptobroker.SignCertificateRequest{Profile: r.GetProfile(), CSR: []byte(r.GetCsr()), CAPrivateKey: []byte(r.GetCaPrivateKey()), CACertificate: []byte(r.GetCaCert())}
		return func(ctx context.Context, _ int) error {
			result, err := client.SignCertificate(ctx, request)
			return errors.Join(err, checkLength("a certificate", len(result.Certificate), 200))
		}
	case l.encrypt != nil:
		r := l.encrypt
		request := cryptobroker.EncryptDataRequest{Profile: r.GetProfile(), Key: cryptobroker.RawKey(r.GetKeySource().GetRawKey()), Plaintext: r.GetPlaintext(), Nonce: r.GetEncryptMetadata().GetNonce()}
		return func(ctx context.Context, _ int) error {
			result, err := client.EncryptData(ctx, request)
			return errors.Join(err, checkLength("a ciphertext", len(result.Ciphertext), len(r.GetPlaintext())))
		}
	}
	return func(ctx context.Context, _ int) error {
		health, err := client.Health(ctx)
		if err == nil && health.String() != "SERVING" {
			err = fmt.Errorf("the health is %s", health)
		}
		return err
	}
}
