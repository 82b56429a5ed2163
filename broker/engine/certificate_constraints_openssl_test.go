// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
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
	// defaultConstraintsCases is for every run; NAME_CONSTRAINTS_CASES is how many
	// there are to be instead.
	defaultConstraintsCases = 5000
)

// TestNamesAreCertifiedExactlyWhereOpenSSLAndRFC5280AcceptThem has random names
// certified by an issuer without constraints, and asks OpenSSL to verify each of
// the certificates by an issuer of the same name and key that has random ones.
// A name is to be certified where OpenSSL accepts it, but for what RFC 5280 has
// refused besides, see refusedByRFC5280.
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
	// It fails where it refuses one of them.
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

// constrainedAuthority is an issuer with name constraints, of the same name and
// key as one without.
func constrainedAuthority(t *testing.T, permitted, excluded []testName) engine.Issuer {
	return authority(t, "p-256", func(c *x509.Certificate) {
		c.SerialNumber = big.NewInt(int64(len(permitted) + len(excluded) + 1))
		general := func(names []testName) (all []asn1.RawValue) {
			for _, name := range names {
				all = append(all, name.general())
			}
			return all
		}
		if len(permitted)+len(excluded) > 0 {
			c.ExtraExtensions = []pkix.Extension{subtrees(t, general(permitted), general(excluded))}
		}
	})
}

// requestFor is a request for names: alternative ones, and the attributes of a
// subject.
func requestFor(t *testing.T, names []testName) []byte {
	var alternative []asn1.RawValue
	subject := rdnSequence{}
	for _, name := range names {
		if name.inSubject() {
			subject = append(subject, name.name...)
		} else {
			alternative = append(alternative, name.general())
		}
	}
	der, err := asn1.Marshal(subject)
	if err != nil {
		t.Error(err)
	}
	template := &x509.CertificateRequest{RawSubject: der}
	if len(alternative) > 0 {
		value, err := asn1.Marshal(alternative)
		if err != nil {
			t.Error(err)
		}
		template.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}}
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, template, certificateKey(t, "p-256"))
	if err != nil {
		t.Error(err)
	}
	return inPEM("CERTIFICATE REQUEST", request)
}

// authorityOfURI is what RFC 3986, section 3.2, has between "//" and the path; the
// host is its second group.
var authorityOfURI = regexp.MustCompile(`^[a-z]+://([^/?#@]*@)?(\[[^]]*\]|[^/?#:@]*)(:[0-9]*)?([/?#].*)?$`)

// refusedByRFC5280 says why names are refused that OpenSSL may accept; empty where
// nothing but its verdict counts.
func refusedByRFC5280(permitted, excluded []testName, names []testName) string {
	restricted := func(kind string) bool { return hasKind(permitted, kind) || hasKind(excluded, kind) }
	for _, name := range names {
		switch name.kind {
		case "URI":
			if !restricted("URI") {
				continue
			}
			host := ""
			if match := authorityOfURI.FindStringSubmatch(name.text); match != nil {
				host = strings.ToLower(match[2])
			}
			if !regexp.MustCompile(`[a-z]$`).MatchString(host) {
				return "a URI whose host is no name, where URIs are restricted"
			}
			within := func(base testName) bool {
				text := strings.ToLower(base.text)
				return base.kind == "URI" && (host == text || strings.HasPrefix(text, ".") && strings.HasSuffix(host, text))
			}
			if hasKind(permitted, "URI") && !containsName(permitted, within) {
				return "a URI whose host OpenSSL reads differently, not permitted"
			}
			if containsName(excluded, within) {
				return "a URI whose host OpenSSL reads differently, excluded"
			}
		case "directory", "subject":
			for _, base := range excluded {
				if base.kind == "directory" && beginsWith(name.name, base.name) {
					return "a name whose letters OpenSSL takes for others, excluded"
				}
			}
		}
		// RFC 5280 leaves open what wildcards and constraints without a text mean.
		if name.kind == "DNS" || name.kind == "CN" && !hasKind(names, "DNS") {
			parent, wildcard := strings.CutPrefix(strings.ToLower(name.text), "*")
			if !wildcard {
				continue
			}
			standsForOne := func(base testName) bool {
				label, isBelow := strings.CutSuffix(strings.ToLower(base.text), parent)
				return base.kind == "DNS" && isBelow && label != "" && !strings.Contains(label, ".")
			}
			if containsName(excluded, standsForOne) {
				return "a wildcard that stands for an excluded name"
			}
			isBelow := func(base testName) bool {
				text := "." + strings.TrimPrefix(strings.ToLower(base.text), ".")
				return base.kind == "DNS" && (base.text == "" || strings.HasSuffix(parent, text))
			}
			if name.kind == "CN" && (hasKind(permitted, "DNS") && !containsName(permitted, isBelow) || containsName(excluded, isBelow)) {
				return "a common name that is a wildcard, as a DNS name"
			}
		}
	}
	for _, name := range names {
		kind := map[string]string{"emailAddress": "mail"}[name.kind]
		if kind == "" {
			kind = name.kind
		}
		if (kind == "mail" || kind == "URI") && containsName(excluded, func(base testName) bool { return base.kind == kind && base.text == "" }) {
			return "a constraint without a text that excludes all"
		}
	}
	return ""
}
