// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/fips140"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/limit"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/request"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
)

// keyAccessFile is the configuration file of the key access service. docs/key-access.md has its
// fields.
type keyAccessFile struct {
	// modules compiles policies in Rego, nil without --rego.
	modules           accesspolicy.CompileModule
	URL               string            `json:"url"`
	BindAddress       string            `json:"bindAddress"`
	StatusBindAddress string            `json:"statusBindAddress"`
	CertificateDir    string            `json:"certificateDir"`
	InsecurePlaintext bool              `json:"insecurePlaintext"`
	KeyDir            string            `json:"keyDir"`
	KeyProvidersDir   string            `json:"keyProvidersDir"`
	DataKeyCache      bool              `json:"dataKeyCache"`
	FIPS              bool              `json:"fips"`
	Issuers           []keyAccessIssuer `json:"issuers"`
	Access            tdfpolicy.Rules   `json:"access"`
	PolicyDir         string            `json:"policyDir"`
	Audit             *keyAccessAudit   `json:"audit"` // nil without records
	// Cluster is nil without resources.
	Cluster *keyAccessCluster `json:"cluster"`
	Limits  keyAccessLimits   `json:"limits"`
	// Federation is nil without peers.
	Federation *keyAccessFederation `json:"federation"`
}

type keyAccessIssuer struct {
	URL              string   `json:"url"`
	Audiences        []string `json:"audiences"`
	Algorithms       []string `json:"algorithms"`
	PlainBearer      bool     `json:"plainBearer"`
	ProofWithBearer  bool     `json:"proofWithBearer"`
	ProofWithPath    bool     `json:"proofWithPath"`
	RequireTokenType bool     `json:"requireTokenType"`
	AuthoritiesFile  string   `json:"authoritiesFile"`
	InsecureLoopback bool     `json:"insecureLoopback"`
}

type keyAccessLimits struct {
	BodyBytes   int `json:"bodyBytes"`
	Objects     int `json:"objects"`
	PolicyBytes int `json:"policyBytes"`
	// Calls a second and at once, of a caller and of a tenant; 0 for no limit.
	CallerPerSecond float64 `json:"callerPerSecond"`
	CallerBurst     int     `json:"callerBurst"`
	TenantClaim     string  `json:"tenantClaim"`
	TenantPerSecond float64 `json:"tenantPerSecond"`
	TenantBurst     int     `json:"tenantBurst"`
	// Connections at one time.
	Connections int `json:"connections"`
	// Requests for data keys at one time, and those that wait.
	InFlight     int `json:"inFlight"`
	Queue        int `json:"queue"`
	QueueSeconds int `json:"queueSeconds"`
}

// maxConfigBytes and maxAuthorityBytes are the sizes of the largest files.
const maxConfigBytes, maxAuthorityBytes = 1 << 20, 1 << 20

// readKeyAccessFile reads and checks the configuration. The error has a sentence for each problem.
func readKeyAccessFile(name string) (*keyAccessFile, error) {
	text, err := readLimited(name, maxConfigBytes)
	if err != nil {
		return nil, err
	}
	c := &keyAccessFile{
		BindAddress: ":8443", StatusBindAddress: ":8081", DataKeyCache: true,
		Limits: keyAccessLimits{BodyBytes: keyaccess.DefaultBodyBytes, Objects: keyaccess.DefaultObjects, PolicyBytes: keyaccess.DefaultPolicyBytes, Connections: 2048, InFlight: 64, Queue: 512, QueueSeconds: 2},
	}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.URL = strings.TrimSuffix(c.URL, "/")
	c.FIPS = c.FIPS || fips140.Enforced()
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

func readLimited(name string, limit int64) ([]byte, error) {
	text, _, err := regularfile.Read(name, limit)
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("%s: found more than %d bytes", name, limit)
	}
	return text, nil
}

func (c *keyAccessFile) check() error {
	var problems []error
	expect := func(ok bool, field string, found any, expected string) {
		if !ok {
			problems = append(problems, fmt.Errorf("%s: found %q, expected %s", field, fmt.Sprint(found), expected))
		}
	}
	u, err := url.Parse(c.URL)
	expect(err == nil && u.Host != "" && u.User == nil && u.Path == "" && u.RawQuery == "" && u.Fragment == "" && (u.Scheme == "https" || u.Scheme == "http" && c.InsecurePlaintext),
		"url", c.URL, "the URL by which clients reach the service, with https and without a path, such as https://keys.example.com")
	expect(isAddress(c.BindAddress), "bindAddress", c.BindAddress, `an address with a port such as ":8443"`)
	expect(c.StatusBindAddress == "0" || isAddress(c.StatusBindAddress), "statusBindAddress", c.StatusBindAddress, `an address with a port such as ":8081", or "0" for none`)
	expect(c.InsecurePlaintext != (c.CertificateDir != ""), "certificateDir", c.CertificateDir, "the directory of tls.crt and tls.key, or insecurePlaintext: true without it")
	expect(filepath.IsAbs(c.KeyDir), "keyDir", c.KeyDir, "the absolute path of the directory of keys")
	expect(c.KeyProvidersDir == "" || filepath.IsAbs(c.KeyProvidersDir), "keyProvidersDir", c.KeyProvidersDir, "the absolute path of the directory of Providers.yaml")
	for _, limit := range []struct {
		field string
		found int
	}{{"bodyBytes", c.Limits.BodyBytes}, {"objects", c.Limits.Objects}, {"policyBytes", c.Limits.PolicyBytes}, {"connections", c.Limits.Connections}} {
		expect(limit.found > 0, "limits."+limit.field, limit.found, "a number above 0")
	}
	if _, _, err := c.loads(); err != nil {
		problems = append(problems, fmt.Errorf("limits: %w", err))
	}
	if err := c.checkAccess(); err != nil {
		problems = append(problems, err)
	}
	if c.Cluster != nil {
		if err := c.Cluster.complete(); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// limits returns the limits of requests.
func (c *keyAccessFile) limits() keyaccess.Limits {
	return keyaccess.Limits{BodyBytes: c.Limits.BodyBytes, Time: keyAccessTime, Limits: request.Limits{Objects: c.Limits.Objects, Policy: c.Limits.PolicyBytes}}
}

// loads returns what callers may ask, and how much the service works on at one time.
func (c *keyAccessFile) loads() (*limit.Rates, *limit.Shedder, error) {
	l := &c.Limits
	rates, err := limit.NewRates(limit.Config{
		Caller: limit.Rate{PerSecond: l.CallerPerSecond, Burst: l.CallerBurst},
		Tenant: limit.Rate{PerSecond: l.TenantPerSecond, Burst: l.TenantBurst}, TenantClaim: l.TenantClaim,
	})
	if err != nil {
		return nil, nil, err
	}
	shedder, err := limit.NewShedder(limit.Load{InFlight: l.InFlight, Queue: l.Queue, Wait: time.Duration(l.QueueSeconds) * time.Second})
	return rates, shedder, err
}

// callers returns the configuration of the verifier of callers.
func (c *keyAccessFile) callers() (caller.Config, error) {
	issuers, err := issuersOf(c.Issuers)
	return caller.Config{URLs: []string{c.URL}, Issuers: issuers}, err
}

// issuersOf returns issuers for a verifier of callers.
func issuersOf(files []keyAccessIssuer) ([]caller.Issuer, error) {
	var issuers []caller.Issuer
	for i, issuer := range files {
		settings := caller.Issuer{
			URL: issuer.URL, Audiences: issuer.Audiences, Algorithms: issuer.Algorithms, PlainBearer: issuer.PlainBearer,
			ProofWithBearer: issuer.ProofWithBearer, ProofWithPath: issuer.ProofWithPath, RequireTokenType: issuer.RequireTokenType, LoopbackHTTP: issuer.InsecureLoopback,
		}
		if issuer.AuthoritiesFile != "" {
			var err error
			if settings.Authorities, err = readLimited(issuer.AuthoritiesFile, maxAuthorityBytes); err != nil {
				return nil, fmt.Errorf("issuers[%d].authoritiesFile: %w", i, err)
			}
		}
		issuers = append(issuers, settings)
	}
	return issuers, nil
}
