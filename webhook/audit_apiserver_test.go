// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// auditFile is an audit log in a file.
type auditFile struct {
	log  *audit.Log
	path string
	key  ed25519.PublicKey
	end  func()
}

func newAuditFile(t *testing.T) *auditFile {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &auditFile{path: filepath.Join(t.TempDir(), "audit.jsonl"), key: public}
	file, err := audit.OpenFile(f.path, 1<<30, 1)
	if err != nil {
		t.Fatal(err)
	}
	if f.log, err = audit.New(audit.Options{Output: file, Signer: private, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	f.end = sync.OnceFunc(func() {
		f.log.Close()
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(f.end)
	return f
}

// has returns nil if a record has these fields. A field with the value nil has to be missing.
func (f *auditFile) has(want map[string]any) error {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var found map[string]any
		if json.Unmarshal(lines.Bytes(), &found) != nil {
			break // the line is not complete yet
		}
		fits := true
		for name, value := range want {
			fits = fits && found[name] == value
		}
		if fits {
			return nil
		}
	}
	return fmt.Errorf("no record has %v:\n%s", want, text)
}

func (f *auditFile) expect(t *testing.T, sentence string, want map[string]any) {
	t.Helper()
	eventually(t, sentence, func() error { return f.has(want) })
}

// startSigning runs signing keys of the test's own as the leader, and returns the key of their
// Secret.
func startSigning(t *testing.T, records *audit.Log) client.ObjectKey {
	t.Helper()
	secret := client.ObjectKey{Namespace: operatorNamespace, Name: "audited-signing"}
	elected := make(chan struct{})
	close(elected)
	keys, err := signing.New(access, signing.Options{
		Namespace: secret.Namespace, SecretName: secret.Name, Lifetime: signing.DefaultLifetime,
		Pods: admin, Elected: elected, Audit: records,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- keys.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		err := <-ended
		object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}}
		if err := errors.Join(err, client.IgnoreNotFound(admin.Delete(context.Background(), object))); err != nil {
			t.Error(err)
		}
	})
	return secret
}

func TestTheOperatorRecordsWhatItDecidesInAChain(t *testing.T) {
	records := newAuditFile(t)
	startWholeOperatorWith(t, 0, records.log)
	ns := newNamespace(t, nil, nil)
	developer, owner := userOf(t, ns, "developer"), userOf(t, ns, "owner", "weaken")

	if err := developer.Create(t.Context(), profileOf(ns, "orders", "sha3-512")); err != nil {
		t.Fatal(err)
	}
	records.expect(t, "a new profile has a record with its author", map[string]any{
		"event": "admission", "result": "accepted", "operation": "create", "object.kind": "CryptoProfile", "object.name": "orders",
		"k8s.namespace.name": ns, "user.name": "developer-of-" + ns, "spec.digest.before": nil, "weaker": nil,
	})
	expectServed(t, ns, "sha3-512")
	records.expect(t, "the set that is written has one", map[string]any{
		"event": "profiles", "k8s.namespace.name": ns, "profiles.digest.before": nil, "profiles.count": 1.0,
	})

	weaken := func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" }
	allow := expectRefused(t, changed(t, developer, ns, weaken))
	records.expect(t, "a refused downgrade has one", map[string]any{
		"event": "admission", "result": "refused", "weaker": "refused", "operation": "update", "object.name": "orders", "user.name": "developer-of-" + ns,
	})
	if err := changed(t, owner, ns, func(p *v1alpha1.CryptoProfile) {
		weaken(p)
		p.Annotations = map[string]string{v1alpha1.AllowWeakerAnnotation: allow}
	}); err != nil {
		t.Fatal(err)
	}
	records.expect(t, "an allowed downgrade has one", map[string]any{
		"event": "admission", "result": "accepted", "weaker": "allowed", "allow_weaker": allow, "user.name": "owner-of-" + ns,
	})
	expectServed(t, ns, "sha-256")
	records.expect(t, "what became weaker has one once it is written", map[string]any{
		"event": "downgrade", "result": "allowed", "k8s.namespace.name": ns, "profile": "orders", "allow_weaker": allow,
	})

	pod := func(change func(*corev1.Pod), options ...client.CreateOption) error {
		p := fixture.PodWith(change)
		p.Namespace = ns
		return admin.Create(t.Context(), p, options...)
	}
	if err := pod(fixture.Asking("true"), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if err := records.has(map[string]any{"event": "injection", "k8s.namespace.name": ns}); err == nil {
		t.Error("a dry run has a record, expected none")
	}
	if err := pod(fixture.Asking("true")); err != nil {
		t.Fatal(err)
	}
	records.expect(t, "an injection has one", map[string]any{
		"event": "injection", "result": "injected", "k8s.namespace.name": ns, "container.image.name": testTemplate().Image, "reason": nil,
	})
	if err := pod(fixture.Asking("maybe")); err == nil {
		t.Fatal("the pod was created")
	}
	records.expect(t, "a refused pod has one", map[string]any{"event": "injection", "result": "refused", "k8s.namespace.name": ns})

	secret := startSigning(t, records.log)
	records.expect(t, "a new signing key has one", map[string]any{"event": "signing-key", "result": "made"})
	eventually(t, "the Secret is annotated", func() error {
		var found corev1.Secret
		if err := admin.Get(t.Context(), secret, &found); err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&found.ObjectMeta, signing.RotateAnnotation, "now")
		return admin.Update(t.Context(), &found)
	})
	records.expect(t, "a rotation has one", map[string]any{"event": "signing-key", "result": "rotated"})

	records.end()
	verifier := audit.NewVerifier(records.key)
	text, err := os.ReadFile(records.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Read("audit.jsonl", bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if report := verifier.Report(); report.Records < 9 || report.Unsigned != 0 || len(report.Notes) > 0 {
		t.Errorf("the check found %+v, expected at least 9 records, all signed", report)
	}
	if _, lost := records.log.Stats(); lost != 0 {
		t.Errorf("%d records were lost", lost)
	}
}
