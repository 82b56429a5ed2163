// SPDX-License-Identifier: Apache-2.0

package openbao

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// serviceAccountToken is the file with the token of a pod's service account.
var serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// login provides the token of requests: a fixed token, or a token that the server issues for the
// token of the pod's service account.
type login struct {
	fixed string
	// role and path are of the Kubernetes method. path is the file with the token of the
	// service account, which the kubelet renews.
	role, path string

	// lock guards the fields below. A goroutine holds it while it logs in.
	lock    chan struct{}
	current string
	// until is when the broker logs in again: after two thirds of the time that the token is
	// valid.
	until time.Time
}

func newLogin(token []byte, role string) (*login, error) {
	fixed := strings.TrimSpace(string(token))
	switch {
	case role == "" && fixed == "":
		return nil, errors.New("found no credential \"token\" and no OpenBao.Role, expected one of them")
	case role != "" && fixed != "":
		return nil, errors.New("found both the credential \"token\" and OpenBao.Role, expected one of them")
	case strings.ContainsFunc(fixed, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("found a credential \"token\" with spaces or characters outside of ASCII, expected one token")
	}
	return &login{fixed: fixed, role: role, path: serviceAccountToken, lock: make(chan struct{}, 1)}, nil
}

// token returns the token of requests. fresh reports whether the server has just issued it.
func (l *login) token(ctx context.Context, s *session) (token string, fresh bool, err error) {
	if l.role == "" {
		return l.fixed, true, nil
	}
	select {
	case l.lock <- struct{}{}:
		defer func() { <-l.lock }()
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
	if l.current != "" && time.Now().Before(l.until) {
		return l.current, false, nil
	}
	identity, err := os.ReadFile(l.path)
	if err != nil {
		return "", false, fmt.Errorf("%w: the token of the service account: %w", keys.ErrUnavailable, err)
	}
	body, err := json.Marshal(map[string]string{"role": l.role, "jwt": strings.TrimSpace(string(identity))})
	clear(identity)
	if err != nil {
		return "", false, err
	}
	defer clear(body)
	var reply struct {
		Auth struct {
			Token   string `json:"client_token"`
			Seconds int64  `json:"lease_duration"`
		} `json:"auth"`
	}
	if err := s.send(ctx, http.MethodPost, "auth/kubernetes/login", "", body, &reply); err != nil {
		if errors.Is(err, errRefused) {
			err = fmt.Errorf("%w: %w", keys.ErrDenied, err) // the server does not know the role
		}
		return "", false, err
	}
	l.current = reply.Auth.Token
	l.until = time.Now().Add(time.Duration(reply.Auth.Seconds) * time.Second * 2 / 3)
	return l.current, true, nil
}

// drop forgets a token that the server does not accept any more. It reports whether login can get
// another token.
func (l *login) drop(token string) bool {
	l.lock <- struct{}{}
	defer func() { <-l.lock }()
	if l.current == token {
		l.current = ""
	}
	return l.role != ""
}
