// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	gatewayv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/gateway/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/keycache"
)

// Options say how to reach a gateway.
type Options struct {
	// Address is host:port.
	Address string
	// TokenFile has the token of the pod. It is read for each request, because the kubelet
	// replaces the token.
	TokenFile string
	// AuthoritiesFile has the authorities of the gateway's certificate in PEM. It is read for
	// each connection.
	AuthoritiesFile string
	// CertificateFile has the certificate of the pod and its private key in PEM, which the broker
	// presents to the gateway. It is read for each connection, because the kubelet replaces it. It is
	// empty if the broker has none.
	CertificateFile string
	Logger          *slog.Logger
}

const (
	// keep is how long the broker uses the properties of a key without asking again.
	keep = time.Minute
	// requestTime bounds a request and its retries. It is longer than it takes to find out that a
	// gateway is silent, and to connect to another one.
	requestTime = 10 * time.Second
	connectTime = 3 * time.Second
	// maxConnectDelay is the longest time between two tries to connect. With 10,000 brokers there
	// are 5,000 tries a second while no gateway runs, and as many handshakes once a gateway runs
	// again.
	maxConnectDelay = 2 * time.Second
	// silenceAfter and silenceLimit are the times of silence: 5 seconds in all, as long as TCP
	// waits for a machine that is gone.
	silenceAfter = 2 * time.Second
	silenceLimit = 3 * time.Second
	// maxRequests is the maximum number of requests at one time. The question whether the gateway
	// answers needs one more.
	maxRequests = MaxCallsOfConnection - 1
)

// policy makes gRPC repeat requests which the gateway did not answer, such as when one of its
// replicas ends. Nothing that a broker asks for changes a key, so all may be repeated.
const policy = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s",
	"backoffMultiplier": 3, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// Client is the provider of the keys that a gateway uses for this broker. It has one
// connection, which it opens when it is needed.
type Client struct {
	// Keys has the keys as the gateway describes them. They have only the operations that their
	// use needs.
	*keycache.Keys
	connection *grpc.ClientConn
	gateway    gatewayv1.KeyGatewayServiceClient
	silence    *silence
	requests   chan struct{} // a semaphore with an entry for each running request
	log        *occasional
}

var _ keys.Prompt = (*Client)(nil)

// New returns a client. It does not connect yet. The files may appear later.
func New(options Options) (*Client, error) {
	c := &Client{log: &occasional{logger: options.Logger}, requests: make(chan struct{}, maxRequests)}
	made := &connections{}
	connection, err := grpc.NewClient("dns:///"+options.Address,
		grpc.WithTransportCredentials(&transport{authorities: options.AuthoritiesFile, certificate: options.CertificateFile, connections: made}),
		grpc.WithPerRPCCredentials(token{options.TokenFile}),
		grpc.WithDefaultServiceConfig(policy), grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxConnectDelay},
			MinConnectTimeout: connectTime,
		}),
		// A gateway whose machine is gone does not close its connections. The timeout is also
		// TCP's timeout for data that the machine does not confirm.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(Codec{}), grpc.MaxCallRecvMsgSize(MaxMessageSize), grpc.MaxCallSendMsgSize(MaxMessageSize)),
		grpc.WithReadBufferSize(4<<10), grpc.WithWriteBufferSize(4<<10),
	)
	if err != nil {
		return nil, fmt.Errorf("key gateway %s: %w", options.Address, err)
	}
	c.connection, c.gateway = connection, gatewayv1.NewKeyGatewayServiceClient(connection)
	c.silence = &silence{after: silenceAfter, limit: silenceLimit, health: healthpb.NewHealthClient(connection), connections: made, log: c.log}
	c.Keys = keycache.New(keep, c.describe)
	return c, nil
}

// Close ends the connection. Requests that have not ended fail.
func (c *Client) Close() {
	c.Keys.Close()
	_ = c.connection.Close() // it fails only if it is closed already
}

func (c *Client) describe(ctx context.Context, name keys.Name, _ *keys.Key) (*keys.Key, error) {
	use := &gatewayv1.KeyUse{Profile: name.Use.Profile, Operation: name.Use.Operation.String(), KeyId: name.ID, Version: name.Version}
	description, err := call(ctx, c, use, c.gateway.DescribeKey, &gatewayv1.DescribeKeyRequest{Use: use})
	if err != nil {
		return nil, err
	}
	key, err := c.keyOf(use, description)
	if err != nil {
		err = fmt.Errorf("%w: the key gateway describes a key that %w", keys.ErrUnusable, err)
		c.log.failed(use, err)
	}
	return key, err
}

// keyOf returns the key that the gateway described. Later requests name its version, so that
// all parts of one operation have the same.
func (c *Client) keyOf(asked *gatewayv1.KeyUse, d *gatewayv1.DescribeKeyResponse) (*keys.Key, error) {
	at := remote{c, &gatewayv1.KeyUse{Profile: asked.GetProfile(), Operation: asked.GetOperation(), KeyId: asked.GetKeyId(), Version: d.GetVersion()}}
	var key *keys.Key
	switch {
	case len(d.GetPublicKey()) > 0:
		public, _, err := keys.ParseVerifier(d.GetPublicKey(), maxRSABits)
		if err != nil {
			return nil, err
		}
		var chain []*x509.Certificate
		for _, der := range d.GetCertificates() {
			certificate, err := x509.ParseCertificate(der)
			if err != nil {
				return nil, errors.New("has a certificate that cannot be read")
			}
			chain = append(chain, certificate)
		}
		switch {
		case !d.GetSigns():
			key, err = keys.NewVerifying(asked.GetKeyId(), public, chain)
		case d.GetTakesMessages():
			key, err = keys.NewRemoteSigning(asked.GetKeyId(), public, messageSigner{signer{at}}, chain)
		default:
			key, err = keys.NewRemoteSigning(asked.GetKeyId(), public, signer{at}, chain)
		}
		if err != nil {
			return nil, err
		}
	case d.GetKeySize() > 0:
		key = keys.NewRemoteSymmetric(asked.GetKeyId(), aead{at, int(d.GetKeySize())})
	case len(d.GetWrappingAlgorithms()) == 0:
		return nil, errors.New("cannot be used for this operation")
	}
	if algorithms := d.GetWrappingAlgorithms(); len(algorithms) > 0 {
		if key == nil {
			key = keys.NewWrapping(asked.GetKeyId(), wrapper{at, algorithms})
		} else {
			key = key.WithWrapper(wrapper{at, algorithms})
		}
	}
	return key.WithVersion(d.GetVersion()), nil
}

// maxRSABits is the largest RSA key of a key manager.
const maxRSABits = 16384

// turn makes a request once fewer than maxRequests are running.
func turn[Request, Response any](ctx context.Context, c *Client, method func(context.Context, Request, ...grpc.CallOption) (Response, error), request Request) (response Response, err error) {
	select {
	case c.requests <- struct{}{}:
		defer func() { <-c.requests }()
	case <-ctx.Done():
		return response, status.FromContextError(ctx.Err()).Err()
	}
	defer c.silence.watch(ctx)()
	return method(ctx, request)
}

// call makes a request, and logs why it failed.
func call[Request, Response any](ctx context.Context, c *Client, use *gatewayv1.KeyUse, method func(context.Context, Request, ...grpc.CallOption) (Response, error), request Request) (Response, error) {
	limited, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	response, err := turn(limited, c, method, request)
	if err = errorOf(ctx, err); err != nil && ctx.Err() == nil {
		c.log.failed(use, err)
	}
	return response, err
}
