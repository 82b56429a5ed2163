// SPDX-License-Identifier: Apache-2.0

//go:build process

package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

const (
	// constraintsSeed and the number of an issuer make its constraints and names.
	constraintsSeed = 5280
	// casesPerIssuer are judged by one process of OpenSSL.
	casesPerIssuer = 25
	// defaultConstraintsCases is the default number of cases. The variable NAME_CONSTRAINTS_CASES sets another number.
	defaultConstraintsCases = 5000
)

// TestNamesAreCertifiedExactlyWhereOpenSSLAndRFC5280AcceptThem issues certificates for random names with an issuer without
// constraints. Then OpenSSL verifies each certificate with an issuer of the same name and key that has random constraints. The
// broker has to certify exactly the names that OpenSSL accepts, except for names that RFC 5280 refuses, see refusedByRFC5280.
func TestNamesAreCertifiedExactlyWhereOpenSSLAndRFC5280AcceptThem(t *testing.T) {
	cases := defaultConstraintsCases
	if text := os.Getenv("NAME_CONSTRAINTS_CASES"); text != "" {
		var err error
		if cases, err = strconv.Atoi(text); err != nil {
			t.Fatalf("NAME_CONSTRAINTS_CASES is %q, expected a number", text)
		}
	}
	var (
		mutex  sync.Mutex
		counts = map[string]int{}
		group  sync.WaitGroup
		slots  = make(chan struct{}, runtime.GOMAXPROCS(0))
	)
	certificateKey(t, "p-256")
	for number := range (cases + casesPerIssuer - 1) / casesPerIssuer {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			found := compareWithOpenSSL(t, number)
			mutex.Lock()
			defer mutex.Unlock()
			for verdict, count := range found {
				counts[verdict] += count
			}
		})
	}
	group.Wait()
	t.Logf("cases: %v", counts)
	compared := counts["certified"] + counts["refused by OpenSSL"] + counts["refused by RFC 5280 alone"]
	if compared < cases || counts["certified"] < cases/10 || counts["refused by OpenSSL"] < cases/10 || counts["refused by RFC 5280 alone"] == 0 {
		t.Errorf("%d cases were compared, expected %d of all three kinds: %v", compared, cases, counts)
	}
}

// compareWithOpenSSL makes one issuer and its cases, and counts the verdicts.
func compareWithOpenSSL(t *testing.T, number int) map[string]int {
	r := randomNames{mathrand.New(mathrand.NewPCG(constraintsSeed, uint64(number)))}
	permitted, excluded := r.constraints()
	constrained, free := constrainedAuthority(t, permitted, excluded), constrainedAuthority(t, nil, nil)
	policy := permissive(t, "SubjectAltNames: {Rule: copy}")
	type certified struct {
		names []testName
		err   error // by the constrained issuer
	}
	dir := t.TempDir()
	root := filepath.Join(dir, "root.pem")
	if err := os.WriteFile(root, certificatePEM(constrained.Certificate), 0o600); err != nil {
		t.Error(err)
		return nil
	}
	arguments, all := []string{"verify", "-CAfile", root}, map[string]certified{}
	for tries := 0; len(all) < casesPerIssuer && tries < 20*casesPerIssuer; tries++ {
		names := r.names()
		request := engine.CertificateRequest{CSR: requestFor(t, names)}
		der, err := engine.IssueCertificate(policy, free, request, time.Now())
		if err != nil {
			continue // no names at all
		}
		file := filepath.Join(dir, fmt.Sprintf("%d.pem", len(all)))
		if err := os.WriteFile(file, inPEM("CERTIFICATE", der), 0o600); err != nil {
			t.Error(err)
			return nil
		}
		_, err = engine.IssueCertificate(policy, constrained, request, time.Now())
		var refusal *engine.InputError
		if err != nil && !errors.As(err, &refusal) {
			t.Errorf("seed %d, issuer %d: %v", constraintsSeed, number, err)
		}
		all[file], arguments = certified{names, err}, append(arguments, file)
	}
	// OpenSSL fails if it refuses one of them.
	out, _ := exec.CommandContext(t.Context(), "openssl", arguments...).CombinedOutput()
	counts := map[string]int{}
	for file, c := range all {
		accepted := bytes.Contains(out, []byte(file+": OK\n"))
		if !accepted && !bytes.Contains(out, []byte("error "+file+": verification failed\n")) {
			t.Errorf("OpenSSL has no verdict on %s:\n%s", file, out)
			continue
		}
		why := refusedByRFC5280(permitted, excluded, c.names)
		if certified := c.err == nil; certified != (accepted && why == "") {
			t.Errorf("seed %d, issuer %d\npermitted %v\nexcluded %v\nnames %v\nOpenSSL accepts them: %t\nRFC 5280: %q\nthe broker: %v",
				constraintsSeed, number, permitted, excluded, c.names, accepted, why, c.err)
		}
		switch {
		case !accepted:
			counts["refused by OpenSSL"]++
		case why != "":
			counts["refused by RFC 5280 alone"]++
			counts["alone: "+why]++
		default:
			counts["certified"]++
		}
	}
	return counts
}
