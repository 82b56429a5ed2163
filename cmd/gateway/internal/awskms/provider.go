// SPDX-License-Identifier: Apache-2.0

package awskms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/keycache"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// Defaults, which are the defaults of package pool.
const (
	maxConnections = 8
	connectTimeout = 5 * time.Second
	idleTime       = time.Minute
)

// Provider is the provider of keys in AWS KMS. The id of a key is its key id or alias/<name>.
type Provider struct {
	client       *kms.Client
	transport    *http.Transport
	slots        *pool.Pool[slot]
	keys         *keycache.Keys
	certificates providers.KeyCertificates
	// stop ends the check that Open begins, and checked waits for it.
	stop    context.CancelFunc
	checked sync.WaitGroup
}

// slot permits one request. The library has its own connections, so the pool only bounds and
// counts requests, and stops them after failures.
type slot struct{}

// Ping implements pool.Conn.
func (slot) Ping(context.Context) error { return nil }

// Close implements pool.Conn.
func (slot) Close() {}

// Open opens the provider that a configuration of the type aws-kms describes. Without an access
// key in the credentials, the library uses the environment of the process, such as the web
// identity of a pod, if the configuration has ActsAsProgram.
func Open(c *providers.Config, given providers.Credentials) (providers.Provider, error) {
	endpoint, err := endpointOf(c)
	if err != nil {
		return nil, err
	}
	client, err := given.TLS(c.ServerName, 0)
	if err != nil {
		return nil, err
	}
	p := &Provider{}
	if p.certificates, err = given.KeyCertificates(); err != nil {
		return nil, err
	}
	limit := cmp.Or(c.Connections.Max, maxConnections)
	dialer := net.Dialer{Timeout: cmp.Or(c.Connections.ConnectTimeout, connectTimeout)}
	p.transport = &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: dialer.Timeout,
		MaxConnsPerHost: limit, MaxIdleConnsPerHost: limit, IdleConnTimeout: cmp.Or(c.Connections.IdleTime, idleTime),
	}
	if err := client.Secure(p.transport, endpoint); err != nil {
		return nil, err
	}
	settings := aws.Config{Region: c.AWSKMS.Region, HTTPClient: &http.Client{Transport: p.transport}, RetryMaxAttempts: 1}
	switch id, secret := given[providers.AccessKeyID], given[providers.SecretAccessKey]; {
	case len(id) > 0 && len(secret) > 0:
		settings.Credentials = credentials.NewStaticCredentialsProvider(string(id), string(secret), string(given[providers.SessionToken]))
	case len(id) > 0 || len(secret) > 0:
		return nil, providers.BadCredentials(fmt.Errorf("found one of the credentials %s and %s, expected both or none", providers.AccessKeyID, providers.SecretAccessKey))
	case !c.ActsAsProgram:
		return nil, providers.BadCredentials(fmt.Errorf("the credentials have no %s, expected an access key, because this provider may not act as the program itself", providers.AccessKeyID))
	default:
		options := []func(*config.LoadOptions) error{config.WithRegion(c.AWSKMS.Region)}
		if tlsprovider.Current().Provider != tlsprovider.Go {
			// The library asks other services for credentials. It would use its own HTTP client
			// unless it gets one, and it can use a bundle of authorities in its own client only.
			if os.Getenv("AWS_CA_BUNDLE") != "" {
				return nil, errors.New("found the variable AWS_CA_BUNDLE, expected none with OpenSSL: SSL_CERT_FILE names a file with authorities")
			}
			others, err := clientOfOthers()
			if err != nil {
				return nil, err
			}
			options = append(options, config.WithHTTPClient(others))
		}
		ambient, err := config.LoadDefaultConfig(context.Background(), options...)
		if err != nil {
			return nil, errors.New("the credentials of the environment cannot be read") // the error may quote them
		}
		settings.Credentials = ambient.Credentials
	}
	p.client = kms.NewFromConfig(settings, func(o *kms.Options) {
		if len(c.Endpoints) > 0 {
			o.BaseEndpoint = aws.String(endpoint)
		}
	})
	p.slots, err = pool.New(pool.Config[slot]{
		Endpoints: []string{endpoint}, Dial: func(context.Context, string) (slot, error) { return slot{}, nil },
		Max: limit, Min: -1, RequestTimeout: c.Connections.RequestTimeout,
	})
	if err != nil {
		return nil, err
	}
	p.keys = keycache.New(c.CacheFor(), p.find)
	// The pool has no idle connection that would show whether the service answers.
	checking, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.checked.Go(func() { _, _ = p.Check(checking) }) // the status shows the result
	return p, nil
}

// clientOfOthers returns an HTTP client for services with a certificate of an authority of the
// system.
func clientOfOthers() (*http.Client, error) {
	client, err := tlsprovider.New(tlsprovider.Config{})
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: connectTimeout}).DialContext, TLSHandshakeTimeout: connectTimeout, IdleConnTimeout: idleTime}
	if err := client.Secure(transport, ""); err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport}, nil
}

// endpointOf returns the URL of the service.
func endpointOf(c *providers.Config) (string, error) {
	switch len(c.Endpoints) {
	case 0:
		return "https://kms." + c.AWSKMS.Region + ".amazonaws.com", nil
	case 1:
	default:
		return "", fmt.Errorf("found %d Endpoints, expected none or one: a region has one", len(c.Endpoints))
	}
	where, err := url.Parse(c.Endpoints[0])
	if err != nil || where.Hostname() == "" || where.Scheme != "https" && where.Scheme != "http" {
		return "", fmt.Errorf("found the endpoint %q, expected a URL, such as https://kms-fips.%s.amazonaws.com", c.Endpoints[0], c.AWSKMS.Region)
	}
	if ip := net.ParseIP(where.Hostname()); where.Scheme == "http" && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf("found the endpoint %q, expected https: without TLS, everybody on the network sees the keys", c.Endpoints[0])
	}
	return c.Endpoints[0], nil
}

// Key implements keys.Provider.
func (p *Provider) Key(ctx context.Context, name keys.Name) (*keys.Key, error) {
	return p.keys.Key(ctx, name)
}

// KeyNow implements keys.Prompt.
func (p *Provider) KeyNow(name keys.Name) (*keys.Key, error) { return p.keys.KeyNow(name) }

// Status implements providers.Provider. Connections are requests.
func (p *Provider) Status() []pool.Status { return p.slots.Status() }

// Check implements providers.Provider. The service does not report a version. The credentials
// need the right kms:ListAliases.
func (p *Provider) Check(ctx context.Context) (version string, err error) {
	_, err = ask(ctx, p, p.client.ListAliases, &kms.ListAliasesInput{Limit: aws.Int32(1)})
	return "AWS KMS", err
}

// Close implements providers.Provider.
func (p *Provider) Close() {
	p.stop()
	p.checked.Wait()
	p.keys.Close()
	p.slots.Close()
	p.transport.CloseIdleConnections()
}

// ask makes a request that changes nothing, and returns the reply.
func ask[In, Out any](ctx context.Context, p *Provider, request func(context.Context, *In, ...func(*kms.Options)) (*Out, error), in *In) (reply *Out, err error) {
	err = p.slots.Do(ctx, pool.Repeatable, func(ctx context.Context, _ slot) (err error) {
		reply, err = request(ctx, in)
		return typed(ctx, err)
	})
	return reply, err
}
