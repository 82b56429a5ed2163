// SPDX-License-Identifier: Apache-2.0

package regocheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
)

const (
	// Path is the path to which modules are posted. The body is the module.
	Path = "/check"
	// MaxModule is the size of the largest module in bytes: a character has at most four.
	MaxModule = 4 * accesspolicy.MaxSource

	// patience is how long an answer may take. The API server waits five seconds for the webhook.
	patience = 3 * time.Second
	// maxAnswer is the size of the largest answer in bytes.
	maxAnswer = 64 << 10
)

// Answer says what is wrong with a module, as JSON.
type Answer struct {
	// Problems has a sentence for each problem, with line and column in the module. It is empty if the module is good.
	Problems []string `json:"problems"`
}

// Client asks the process of a socket directory. It is safe for concurrent use.
type Client struct{ http http.Client }

// NewClient returns a client. The process need not run yet.
func NewClient(socketDir string) *Client {
	socket := filepath.Join(socketDir, contract.SocketFile)
	var dialer net.Dialer
	return &Client{http.Client{
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "unix", socket)
			},
		},
	}}
}

// Check returns what is wrong with a module, nothing for a good one. The error says why the module was not checked.
func (c *Client) Check(ctx context.Context, module string) ([]string, error) {
	answer, err := c.ask(ctx, module)
	if err != nil {
		// The URL does not help the reader of the sentence.
		if failed := new(url.Error); errors.As(err, &failed) {
			err = failed.Err
		}
		return nil, fmt.Errorf("gateway rego-check, which checks modules for the operator, did not answer: %w", err)
	}
	return answer.Problems, nil
}

func (c *Client) ask(ctx context.Context, module string) (*Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://rego-check"+Path, strings.NewReader(module))
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("status %d, %.200s", response.StatusCode, strings.TrimSpace(string(body)))
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("an answer of more than %d bytes", maxAnswer)
	}
	answer := &Answer{}
	if err := json.Unmarshal(body, answer); err != nil {
		return nil, fmt.Errorf("an answer that is no JSON: %w", err)
	}
	if answer.Problems == nil {
		return nil, errors.New("an answer without problems, expected a list, which may be empty")
	}
	return answer, nil
}
