// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// auditPolicy makes the API server record the requests of its clients, and those to watch when they begin. A rule for one
// user would not match requests in the name of that user.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    users: ["system:apiserver"]
  - level: Metadata
`

// AuditLog is the audit log of an API server.
type AuditLog struct{ file string }

// Request is a request of a user.
type Request struct {
	// Verb is such as "list" or "patch".
	Verb string
	// Group and Resource are such as "apps" and "deployments/status". Of a request for another path, Group is empty and
	// Resource is the path.
	Group, Resource string
	// Namespace and Name are empty if the request names none.
	Namespace, Name string
	// Forbidden is set if the user had no right to it.
	Forbidden bool
}

// StartAuditedFor is [StartFor] with an audit log.
func StartAuditedFor(t testing.TB) (*rest.Config, AuditLog) {
	t.Helper()
	root, err := environment.Repository()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	admin, stop, err := start(map[string]string{"audit-policy-file": policy, "audit-log-path": log, "audit-log-mode": "blocking"}, filepath.Join(root, "config", "crd", "bases"))
	stopAfter(t, stop, err)
	return admin, AuditLog{log}
}

// Requests returns the requests of a user, or in its name, that the API server has recorded so far.
func (l AuditLog) Requests(user string) (requests []Request, err error) {
	content, err := os.ReadFile(l.file)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // the API server is writing it
		}
		var event struct {
			Verb             string
			RequestURI       string
			User             struct{ Username string }
			ImpersonatedUser *struct{ Username string }
			ObjectRef        *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
			ResponseStatus   struct{ Code int }
			Annotations      map[string]string
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if as := event.ImpersonatedUser; as != nil {
			event.User.Username = as.Username
		}
		if event.User.Username != user {
			continue
		}
		request := Request{
			Verb: event.Verb, Resource: event.RequestURI,
			Forbidden: event.ResponseStatus.Code == http.StatusForbidden && event.Annotations["authorization.k8s.io/decision"] == "forbid",
		}
		if ref := event.ObjectRef; ref != nil && ref.Resource != "" {
			request.Group, request.Resource, request.Namespace, request.Name = ref.APIGroup, ref.Resource, ref.Namespace, ref.Name
			if ref.Subresource != "" {
				request.Resource += "/" + ref.Subresource
			}
		}
		requests = append(requests, request)
	}
	return requests, nil
}
