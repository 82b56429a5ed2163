// SPDX-License-Identifier: Apache-2.0

package keyaccess_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/wellknownconfiguration"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
)

// get returns the reply to a request without credentials.
func (x *service) get(t testing.TB, path string) (status int, text string) {
	t.Helper()
	out, err := x.Client().Get(x.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatal(err)
	}
	return out.StatusCode, string(body)
}

func TestOnlyCallersWithATokenAndAProofMayAskForDataKeys(t *testing.T) {
	x := start(t, setting{})
	client, dataKey, body := parseKey(t, privateKeys()[wrapping.P256]), newDataKey(), policyBody(plainPolicy)
	signed := x.sign(ask(t, client, body, wrap(t, wrapping.P256, dataKey, body)))
	proof := x.prover.Proof(http.MethodPost, x.URL+procedure, x.token)
	unbound := x.issuer.Token(x.issuer.Claims("alice", nil))
	for name, header := range map[string]http.Header{
		"nothing":                     {},
		"a token without its proof":   {"Authorization": {"Bearer " + x.token}},
		"a token that is not bound":   {"Authorization": {"Bearer " + unbound}},
		"a proof for another request": {"Authorization": {"DPoP " + x.token}, "Dpop": {x.prover.Proof(http.MethodPost, x.URL+plainPath, x.token)}},
		"a changed proof":             {"Authorization": {"DPoP " + x.token}, "Dpop": {proof[:len(proof)-4] + "AAAA"}},
		"a changed token":             {"Authorization": {"DPoP " + x.token[:len(x.token)-4] + "AAAA"}, "Dpop": {proof}},
	} {
		t.Run(name, func(t *testing.T) {
			for protocol, options := range map[string][]connect.ClientOption{"Connect": nil, "gRPC": {connect.WithGRPC()}} {
				in := connect.NewRequest(&kas.RewrapRequest{SignedRequestToken: signed})
				for key, values := range header {
					in.Header()[key] = values
				}
				_, err := connect.NewClient[kas.RewrapRequest, kas.RewrapResponse](x.Client(), x.URL+procedure, options...).CallUnary(context.Background(), in)
				if connect.CodeOf(err) != connect.CodeUnauthenticated {
					t.Errorf("%s: found %v, expected unauthenticated", protocol, err)
				}
			}
		})
	}
	out, err := x.Client().Post(x.URL+plainPath, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	if out.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(out.Header.Get("WWW-Authenticate"), "DPoP ") {
		t.Errorf("found status %d and the challenge %q", out.StatusCode, out.Header.Get("WWW-Authenticate"))
	}
}

func TestACallerWithAPlainTokenNeedsNoKeyWhereThatIsAllowed(t *testing.T) {
	x := start(t, setting{plainBearer: true})
	client, dataKey, body := parseKey(t, privateKeys()[wrapping.P256]), newDataKey(), policyBody(plainPolicy)
	in := connect.NewRequest(&kas.RewrapRequest{SignedRequestToken: x.sign(ask(t, client, body, wrap(t, wrapping.P256, dataKey, body)))})
	in.Header().Set("Authorization", "Bearer "+x.issuer.Token(x.issuer.Claims("alice", nil)))
	out, err := connect.NewClient[kas.RewrapRequest, kas.RewrapResponse](x.Client(), x.URL+procedure).CallUnary(context.Background(), in)
	if err != nil || out.Msg.GetResponses()[0].GetResults()[0].GetStatus() != "permit" {
		t.Errorf("found %v, %v", out, err)
	}
}

// defective is an Authorizer that panics.
type defective struct{}

func (defective) Permits(context.Context, caller.Caller, tdfpolicy.Object) bool { return true }

func (defective) Revision() uint64 { return 0 }

func (defective) Authorize(context.Context, caller.Caller, tdfpolicy.Object) error { panic("a secret") }

func TestADefectIsLoggedWithoutItsText(t *testing.T) {
	log := &written{}
	x := start(t, setting{log: log, authorizer: defective{}})
	client, dataKey, body := parseKey(t, privateKeys()[wrapping.P256]), newDataKey(), policyBody(plainPolicy)
	_, err := x.rewrap(t, x.sign(ask(t, client, body, wrap(t, wrapping.P256, dataKey, body))))
	if err == nil || strings.Contains(err.Error(), "a secret") {
		t.Errorf("found %v", err)
	}
	if text := log.String(); !strings.Contains(text, "because of a defect") || !strings.Contains(text, "defective.Authorize") || strings.Contains(text, "a secret") {
		t.Errorf("found the log %s", text)
	}
	if status, _ := x.get(t, "/kas/v2/kas_public_key"); status != http.StatusOK {
		t.Errorf("the next request: found status %d", status)
	}
}

func TestPublicKeysNeedNoToken(t *testing.T) {
	x := start(t, setting{})
	ask := func(in *kas.PublicKeyRequest, options ...connect.ClientOption) (*kas.PublicKeyResponse, error) {
		out, err := connect.NewClient[kas.PublicKeyRequest, kas.PublicKeyResponse](x.Client(), x.URL+"/kas.AccessService/PublicKey", options...).CallUnary(context.Background(), connect.NewRequest(in))
		if err != nil {
			return nil, err
		}
		return out.Msg, nil
	}
	for _, options := range [][]connect.ClientOption{nil, {connect.WithGRPC()}, {connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)}} {
		for algorithm, text := range privateKeys() {
			response, err := ask(&kas.PublicKeyRequest{Algorithm: string(algorithm)}, options...)
			if err != nil || response.GetPublicKey() != parseKey(t, text).Public() || response.GetKid() != strings.ReplaceAll(string(algorithm), ":", "-") {
				t.Errorf("%s: found %v, %v", algorithm, response, err)
			}
		}
	}
	if response, err := ask(&kas.PublicKeyRequest{V: "1"}); err != nil || response.GetKid() != "" || response.GetPublicKey() != parseKey(t, privateKeys()[wrapping.RSA2048]).Public() {
		t.Errorf("without an algorithm, first version: found %v, %v", response, err)
	}
	if response, err := ask(&kas.PublicKeyRequest{Algorithm: "ec:secp384r1", Fmt: "jwk"}); err != nil || !strings.Contains(response.GetPublicKey(), `"crv":"P-384"`) || strings.Contains(response.GetPublicKey(), `"d"`) {
		t.Errorf("as JWK: found %v, %v", response, err)
	}
	for name, c := range map[string]struct {
		in   *kas.PublicKeyRequest
		code connect.Code
	}{
		"an unknown algorithm":         {&kas.PublicKeyRequest{Algorithm: "ec:secp256k1"}, connect.CodeInvalidArgument},
		"an algorithm without a key":   {&kas.PublicKeyRequest{Algorithm: "rsa:4096"}, connect.CodeNotFound},
		"an unknown format":            {&kas.PublicKeyRequest{Fmt: "der"}, connect.CodeInvalidArgument},
		"a format that ML-KEM has not": {&kas.PublicKeyRequest{Algorithm: "mlkem:768", Fmt: "jwk"}, connect.CodeInvalidArgument},
	} {
		if _, err := ask(c.in); connect.CodeOf(err) != c.code {
			t.Errorf("%s: found %v, expected the code %s", name, err, c.code)
		}
	}
	out, err := connect.NewClient[kas.LegacyPublicKeyRequest, wrapperspb.StringValue](x.Client(), x.URL+"/kas.AccessService/LegacyPublicKey").CallUnary(context.Background(), connect.NewRequest(&kas.LegacyPublicKeyRequest{}))
	if err != nil || out.Msg.GetValue() != parseKey(t, privateKeys()[wrapping.RSA2048]).Public() {
		t.Errorf("LegacyPublicKey: found %v, %v", out, err)
	}
	status, text := x.get(t, "/kas/v2/kas_public_key?algorithm=ec:secp256r1")
	var plain struct{ PublicKey, Kid string }
	if err := json.Unmarshal([]byte(text), &plain); err != nil || status != http.StatusOK || plain.Kid != "ec-secp256r1" || plain.PublicKey != parseKey(t, privateKeys()[wrapping.P256]).Public() {
		t.Errorf("plain: found status %d: %s", status, text)
	}
	if status, text := x.get(t, "/kas/kas_public_key"); status != http.StatusOK || !strings.HasPrefix(text, `"-----BEGIN PUBLIC KEY`) {
		t.Errorf("plain without an id: found status %d: %s", status, text)
	}
	if status, text := x.get(t, "/kas/v2/kas_public_key?algorithm=rsa:1"); status != http.StatusBadRequest || !strings.Contains(text, `"code":3`) {
		t.Errorf("plain with an unknown algorithm: found status %d: %s", status, text)
	}
}

func TestARequestWithoutATokenIsSmall(t *testing.T) {
	x := start(t, setting{})
	for _, path := range []string{"/kas.AccessService/PublicKey", "/kas.AccessService/LegacyPublicKey", "/wellknownconfiguration.WellKnownService/GetWellKnownConfiguration", "/grpc.health.v1.Health/Check"} {
		client := connect.NewClient[kas.RewrapRequest, kas.RewrapResponse](x.Client(), x.URL+path, connect.WithSendGzip())
		_, err := client.CallUnary(context.Background(), connect.NewRequest(&kas.RewrapRequest{SignedRequestToken: strings.Repeat("a", 20<<10)}))
		if connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("%s: found %v, expected resource_exhausted", path, err)
		}
	}
}

func TestTheConfigurationSaysWhereEverythingIs(t *testing.T) {
	x := start(t, setting{})
	out, err := connect.NewClient[wellknownconfiguration.GetWellKnownConfigurationRequest, wellknownconfiguration.GetWellKnownConfigurationResponse](x.Client(),
		x.URL+"/wellknownconfiguration.WellKnownService/GetWellKnownConfiguration").CallUnary(context.Background(), connect.NewRequest(&wellknownconfiguration.GetWellKnownConfigurationRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	status, text := x.get(t, "/.well-known/opentdf-configuration")
	plain := map[string]any{}
	if err := json.Unmarshal([]byte(text), &plain); err != nil || status != http.StatusOK {
		t.Fatalf("found status %d: %s", status, text)
	}
	for name, found := range map[string]map[string]any{"by Connect": out.Msg.GetConfiguration().AsMap(), "as plain JSON": plain} {
		place, _ := found["kas"].(map[string]any)
		if found["platform_issuer"] != x.issuer.URL || place["rewrap_url"] != x.URL+plainPath || place["connect_rewrap_url"] != x.URL+procedure {
			t.Errorf("%s: found %v", name, found)
		}
		base, _ := found["base_key"].(map[string]any)
		if key, _ := base["public_key"].(map[string]any); key["kid"] != "rsa-2048" {
			t.Errorf("%s: found the key %v", name, key)
		}
	}
}

func TestWithFIPSThereIsNoRSAAndNoXWing(t *testing.T) {
	x := start(t, setting{fips: true})
	dataKey, body := newDataKey(), policyBody(plainPolicy)
	for algorithm, text := range map[wrapping.Algorithm]string{wrapping.RSA2048: "this service does not use RSA-OAEP with SHA-1", wrapping.XWing: "this service does not use X25519"} {
		_, err := x.rewrap(t, x.sign(ask(t, parseKey(t, privateKeys()[algorithm]), body, wrap(t, wrapping.P256, dataKey, body))))
		if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), text) {
			t.Errorf("a client with a key %s: found %v", algorithm, err)
		}
		response, err := x.rewrap(t, x.sign(ask(t, parseKey(t, privateKeys()[wrapping.P256]), body, wrap(t, algorithm, dataKey, body), wrap(t, wrapping.P256, dataKey, body))))
		if err != nil {
			t.Fatal(err)
		}
		results := response.GetResponses()[0].GetResults()
		if !strings.Contains(results[0].GetError(), `wrapped" needs`) || results[1].GetStatus() != "permit" {
			t.Errorf("%s: found %v", algorithm, results)
		}
		if status, text := x.get(t, "/kas/v2/kas_public_key?algorithm="+string(algorithm)); status != http.StatusNotFound {
			t.Errorf("the key %s: found status %d: %s", algorithm, status, text)
		}
	}
	if status, text := x.get(t, "/kas/v2/kas_public_key"); status != http.StatusOK || !strings.Contains(text, `"kid":"ec-secp256r1"`) {
		t.Errorf("the first key: found status %d: %s", status, text)
	}
}

func TestResultsAreNotCompressedForClientsThatWouldTakeThat(t *testing.T) {
	x := start(t, setting{})
	dataKey, body := newDataKey(), policyBody(plainPolicy)
	message, err := proto.Marshal(&kas.RewrapRequest{
		SignedRequestToken: x.sign(ask(t, parseKey(t, privateKeys()[wrapping.RSA2048]), body, wrap(t, wrapping.RSA2048, dataKey, body))),
	})
	if err != nil {
		t.Fatal(err)
	}
	framed := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	for kind, sent := range map[string][]byte{"application/proto": message, "application/grpc+proto": framed} {
		in, err := http.NewRequest(http.MethodPost, x.URL+procedure, bytes.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		x.credentials(in.Header, procedure)
		in.Header.Set("Content-Type", kind)
		in.Header.Set("Accept-Encoding", "gzip")
		in.Header.Set("Grpc-Accept-Encoding", "gzip")
		out, err := x.Client().Do(in)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(out.Body)
		out.Body.Close()
		const frame = 5 // the first byte says whether a message of gRPC is compressed
		if kind != "application/proto" && len(text) > frame && text[0] == 0 {
			text = text[frame:]
		}
		response := &kas.RewrapResponse{}
		if err != nil || out.Header.Get("Content-Encoding") != "" || proto.Unmarshal(text, response) != nil || response.GetResponses()[0].GetResults()[0].GetStatus() != "permit" {
			t.Errorf("%s: found %q with the header %v, %v", kind, text, out.Header, err)
		}
	}
}
