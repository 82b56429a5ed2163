// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/json"

	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// Limits of what an issuer answers.
const (
	fetchTimeout     = 10 * time.Second
	maxDocument      = 256 << 10
	maxKeys          = 100
	discoveryPath    = "/.well-known/openid-configuration"
	maxHeaderOfReply = 16 << 10
)

// newClient returns an HTTP client for issuers. It follows no redirects, so the keys come only
// from the address that the issuer names.
func newClient(settings Issuer) (*http.Client, error) {
	secure, err := tlsprovider.New(tlsprovider.Config{Authorities: settings.Authorities})
	if err != nil {
		return nil, fmt.Errorf("read the authorities: %w", err)
	}
	transport := &http.Transport{
		MaxConnsPerHost: 2, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: fetchTimeout,
		ResponseHeaderTimeout: fetchTimeout, MaxResponseHeaderBytes: maxHeaderOfReply,
	}
	if err := secure.Secure(transport, settings.URL); err != nil {
		return nil, err
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// fetch returns the keys that the issuer has at this time, and how many of its keys cannot be used here.
func (i *keySource) fetch(ctx context.Context) (keys []publicKey, skipped int, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	// OpenID Connect Discovery 1.0, sections 4.1 and 4.3.
	var document struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := i.get(ctx, strings.TrimSuffix(i.URL, "/")+i.discovery, &document); err != nil {
		return nil, 0, err
	}
	if document.Issuer != i.URL {
		return nil, 0, fmt.Errorf("the discovery document is of the issuer %.200q, expected the issuer in the configuration", document.Issuer)
	}
	if err := i.checkKeysURL(document.Keys); err != nil {
		return nil, 0, fmt.Errorf("jwks_uri of the discovery document is %.200q, %w", document.Keys, err)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := i.get(ctx, document.Keys, &set); err != nil {
		return nil, 0, err
	}
	if len(set.Keys) > maxKeys {
		return nil, 0, fmt.Errorf("found %d keys, expected at most %d", len(set.Keys), maxKeys)
	}
	// RFC 7517, section 5: keys that are not understood are ignored.
	for _, text := range set.Keys {
		key, err := parseKey(text)
		switch {
		case errors.Is(err, errPrivate):
			i.log.Warn("the issuer publishes a private or secret key, which is not used")
			skipped++
		case err != nil:
			skipped++
		default:
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, 0, fmt.Errorf("none of the %d keys of the issuer can be used", len(set.Keys))
	}
	return keys, skipped, nil
}

// checkKeysURL returns an error that continues a sentence which begins with the URL. The keys of an issuer with https come by https.
func (i *keySource) checkKeysURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return errors.New("expected a URL")
	}
	return checkScheme(u, i.LoopbackHTTP && strings.HasPrefix(i.URL, "http://"))
}

// get reads a JSON document.
func (i *keySource) get(ctx context.Context, from string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	reply, err := i.client.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %.200s: found status %d, expected 200", from, reply.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxDocument+1))
	if err != nil {
		return fmt.Errorf("GET %.200s: %w", from, err)
	}
	if len(text) > maxDocument {
		return fmt.Errorf("GET %.200s: found more than %d bytes", from, maxDocument)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("GET %.200s: found no JSON object with the expected members", from)
	}
	return nil
}
