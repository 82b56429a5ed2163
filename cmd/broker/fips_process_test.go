// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	policyv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/policy/v1"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

// validated builds the program once with the module that images have.
var validated = sync.OnceValues(func() (string, error) {
	program := filepath.Join(filepath.Dir(binary), "broker-fips")
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=v1.2.3", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFIPS140=v1.0.0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, output)
	}
	return program, nil
})

// useValidated makes a test use the program with the validated module.
func useValidated(t *testing.T) {
	t.Helper()
	program, err := validated()
	if err != nil {
		t.Fatal(err)
	}
	usual := binary
	binary = program
	t.Cleanup(func() { binary = usual })
}

func TestABrokerThatRequiresFIPSServesWhatIsApproved(t *testing.T) {
	useValidated(t)
	at := newPlace(t, "")
	at.write(string(catalogue.Profiles))
	broker := start(t, at.args("--require-fips")...)
	if _, metrics := get(t, broker.listening(), "/metrics"); !strings.Contains(metrics, `crypto_broker_fips_info{enforced="true",mode="on",module="v1.0.0"} 1`) {
		t.Error("/metrics does not say that the validated module is on and enforced")
	} else if !strings.Contains(metrics, `crypto_broker_tls_info{fips="true",fips_module="",provider="go",version="Go Cryptographic Module v1.0.0"} 1`) {
		t.Error("/metrics does not say that the validated module is used for TLS")
	}
	conn := connect(t, at.socket(""))
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	if _, err := hashes(t, conn); err != nil {
		t.Error(err)
	}
	_, err := v1.NewCryptoServiceClient(conn).EncryptData(ctx, &v1.EncryptDataRequest{
		Profile: "FIPS-140-3-256bit", KeySource: &v1.KeySource{Source: &v1.KeySource_RawKey{RawKey: make([]byte, 32)}},
		EncryptMetadata: &v1.EncryptMetadata{Nonce: make([]byte, 12)},
	})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "the caller makes the nonce") {
		t.Errorf("a nonce of the caller: %v", err)
	}
	list, err := policyv1.NewPolicyServiceClient(conn).ListProfiles(ctx, &policyv1.ListProfilesRequest{})
	if fips := list.GetFips(); err != nil || fips.GetModule() != "v1.0.0" || fips.GetMode() != "on" || !fips.GetRequired() || len(list.GetProfiles()) != 6 {
		t.Errorf("the list says %v, %v", list, err)
	}
}

func TestABrokerThatRequiresFIPSRefusesToStartWithoutIt(t *testing.T) {
	at := newPlace(t, "sha-256")
	const (
		off    = "FIPS 140-3 mode is off, expected on: remove fips140 from the environment variable GODEBUG, or set it to fips140=on"
		latest = `this program has the version "latest" of the Go Cryptographic Module, expected the validated v1.0.0: build it with GOFIPS140=v1.0.0`
	)
	for sentence, c := range map[string]struct {
		validated bool
		env       []string
		args      []string
		want      string
	}{
		"switched off":                         {true, []string{"GODEBUG=fips140=off"}, []string{"--require-fips"}, "--require-fips: " + off},
		"switched off, required by variable":   {true, []string{"GODEBUG=fips140=off", "CRYPTO_BROKER_REQUIRE_FIPS=true"}, nil, "--require-fips: " + off},
		"built without":                        {false, nil, []string{"--require-fips"}, "--require-fips: " + latest},
		"built without, switched on":           {false, []string{"GODEBUG=fips140=on"}, []string{"--require-fips"}, "--require-fips: " + latest},
		"in the mode that is for tests of Go":  {true, []string{"GODEBUG=fips140=only"}, nil, "GODEBUG has fips140=only, expected fips140=on: with it Go fails approved operations as well, while --require-fips refuses those that are not approved, one by one"},
		"in that mode although it is required": {true, []string{"GODEBUG=fips140=only"}, []string{"--require-fips"}, "GODEBUG has fips140=only, expected fips140=on: with it Go fails approved operations as well, while --require-fips refuses those that are not approved, one by one"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if c.validated {
				useValidated(t)
			}
			code, stdout, stderr := run(t, environment(c.env...), at.args(c.args...)...)
			if code != 1 || stdout != "" || stderr != "broker: "+c.want+"\n" {
				t.Errorf("got %d %q %q\nwant 1 %q", code, stdout, stderr, c.want)
			}
		})
	}
}

func TestAnOrdinaryBrokerRefusesToUseOpenSSL(t *testing.T) {
	at := newPlace(t, "sha-256")
	const want = "the TLS provider is openssl, but this program was built without it, expected one that was built by make build-openssl\n"
	if code, stdout, stderr := run(t, environment(), at.args("--tls-provider=openssl")...); code != 1 || stdout != "" || stderr != "broker: --tls-provider: "+want {
		t.Errorf("got %d %q %q", code, stdout, stderr)
	}
	if code, stdout, stderr := run(t, environment("CRYPTO_BROKER_TLS_PROVIDER=openssl"), "version"); code != 1 || stdout != "" || stderr != "broker: "+want {
		t.Errorf("version: got %d %q %q", code, stdout, stderr)
	}
}

func TestVersionTellsWhatABrokerComputesWith(t *testing.T) {
	useValidated(t)
	for want, env := range map[string][]string{
		"v1.0.0, FIPS 140-3 mode on, not enforced":  nil,
		"v1.0.0, FIPS 140-3 mode on, enforced":      {"CRYPTO_BROKER_REQUIRE_FIPS=true"},
		"v1.0.0, FIPS 140-3 mode off, not enforced": {"GODEBUG=fips140=off"},
	} {
		whole := fmt.Sprintf("broker v1.2.3 %s %s/%s\nGo Cryptographic Module %s\nTLS of connections to others: Go Cryptographic Module %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, want, strings.TrimSuffix(strings.TrimSuffix(want, ", not enforced"), ", enforced"))
		if code, stdout, stderr := run(t, environment(env...), "version"); code != 0 || stdout != whole {
			t.Errorf("%v: got %d %q %q, want %q", env, code, stdout, stderr, whole)
		}
		_, modules, _ := strings.Cut(whole, "\n")
		modules = "operations, sessions and signatures of audit records: " + modules
		if code, stdout, stderr := run(t, environment(env...), "fips"); code != 0 || stdout != modules {
			t.Errorf("%v: got %d %q %q, want %q", env, code, stdout, stderr, modules)
		}
	}
}

func TestTheDevelopmentServiceIsSwitchedOnByFlagOrVariable(t *testing.T) {
	for sentence, c := range map[string]struct {
		env, args []string
		want      codes.Code
	}{
		"by nothing":  {nil, nil, codes.Unimplemented},
		"by flag":     {nil, []string{"--development-service"}, codes.OK},
		"by variable": {[]string{"CRYPTO_BROKER_DEVELOPMENT_SERVICE=true"}, nil, codes.OK},
		"off by flag": {[]string{"CRYPTO_BROKER_DEVELOPMENT_SERVICE=true"}, []string{"--development-service=false"}, codes.Unimplemented},
	} {
		t.Run(sentence, func(t *testing.T) {
			at := newPlace(t, "sha-256")
			startWith(t, environment(c.env...), at.args(c.args...)...).listening()
			ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
			defer cancel()
			_, err := v1.NewCryptoDevServiceClient(connect(t, at.socket(""))).FakeEndpoint(ctx, &v1.FakeEndpointRequest{}, grpc.WaitForReady(true))
			if status.Code(err) != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}
