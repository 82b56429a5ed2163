// SPDX-License-Identifier: Apache-2.0

package keyaccess_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/request"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

const (
	procedure = "/kas.AccessService/Rewrap"
	plainPath = "/kas/v2/rewrap"

	badRequest = "rpc error: code = InvalidArgument desc = bad request"
	forbidden  = "rpc error: code = PermissionDenied desc = forbidden"
)

// rewrap sends a signed request by Connect.
func (x *service) rewrap(t testing.TB, signed string, options ...connect.ClientOption) (*kas.RewrapResponse, error) {
	t.Helper()
	client := connect.NewClient[kas.RewrapRequest, kas.RewrapResponse](x.Client(), x.URL+procedure, options...)
	in := connect.NewRequest(&kas.RewrapRequest{SignedRequestToken: signed})
	x.credentials(in.Header(), procedure)
	out, err := client.CallUnary(context.Background(), in)
	if err != nil {
		return nil, err
	}
	return out.Msg, nil
}

// rewrapPlain sends a signed request as plain JSON.
func (x *service) rewrapPlain(t testing.TB, body string) (status int, text []byte) {
	t.Helper()
	in, err := http.NewRequest(http.MethodPost, x.URL+plainPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	x.credentials(in.Header, plainPath)
	out, err := x.Client().Do(in)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	if text, err = io.ReadAll(out.Body); err != nil {
		t.Fatal(err)
	}
	return out.StatusCode, text
}

// rewrapGRPC sends a signed request by gRPC.
func (x *service) rewrapGRPC(t testing.TB, signed string) (*kas.RewrapResponse, error) {
	t.Helper()
	roots := x.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	connection, err := grpc.NewClient(strings.TrimPrefix(x.URL, "https://"), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "example.com"})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() }) // the file was only read, so an error loses no data
	header := http.Header{}
	x.credentials(header, procedure)
	ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", header.Get("Authorization"), "dpop", header.Get("DPoP"))
	return kas.NewAccessServiceClient(connection).Rewrap(ctx, &kas.RewrapRequest{SignedRequestToken: signed})
}

func TestADataKeyIsReleasedByEachProtocol(t *testing.T) {
	x := start(t, setting{})
	client := parseKey(t, privateKeys()[wrapping.P256])
	protocols := map[string]func(signed string) (*kas.RewrapResponse, error){
		"Connect with protobuf": func(signed string) (*kas.RewrapResponse, error) { return x.rewrap(t, signed) },
		"Connect with JSON":     func(signed string) (*kas.RewrapResponse, error) { return x.rewrap(t, signed, connect.WithProtoJSON()) },
		"Connect with gzip":     func(signed string) (*kas.RewrapResponse, error) { return x.rewrap(t, signed, connect.WithSendGzip()) },
		"gRPC":                  func(signed string) (*kas.RewrapResponse, error) { return x.rewrapGRPC(t, signed) },
		"plain JSON": func(signed string) (*kas.RewrapResponse, error) {
			status, text := x.rewrapPlain(t, `{"signedRequestToken":"`+signed+`","bearer":""}`)
			if status != http.StatusOK {
				t.Fatalf("status %d: %s", status, text)
			}
			response := &kas.RewrapResponse{}
			return response, protojson.Unmarshal(text, response)
		},
	}
	for name, rewrap := range protocols {
		t.Run(name, func(t *testing.T) {
			dataKey, body := newDataKey(), policyBody(plainPolicy)
			response, err := rewrap(x.sign(ask(t, client, body, wrap(t, wrapping.RSA2048, dataKey, body))))
			if err != nil {
				t.Fatal(err)
			}
			policies := response.GetResponses()
			if len(policies) != 1 || policies[0].GetPolicyId() != "policy" || len(policies[0].GetResults()) != 1 {
				t.Fatalf("found %v", response)
			}
			result := policies[0].GetResults()[0]
			if result.GetStatus() != "permit" || result.GetKeyAccessObjectId() != "a" {
				t.Fatalf("found %v", result)
			}
			if !bytes.Equal(opened(t, client, response, result.GetKasWrappedKey()), dataKey) {
				t.Error("found another data key")
			}
		})
	}
}

func TestADataKeyIsReleasedFromEachKeyToEachKey(t *testing.T) {
	x := start(t, setting{})
	for to := range privateKeys() {
		t.Run(string(to), func(t *testing.T) {
			client, dataKey, body := parseKey(t, privateKeys()[to]), newDataKey(), policyBody(plainPolicy)
			var objects []*kas.KeyAccess
			for from := range privateKeys() {
				object := wrap(t, from, dataKey, body)
				withoutID := wrap(t, from, dataKey, body)
				withoutID.Kid = ""
				withoutID.PolicyBinding.Hash = bind(dataKey, body, false)
				objects = append(objects, object, withoutID)
			}
			response, err := x.rewrap(t, x.sign(ask(t, client, body, objects...)))
			if err != nil {
				t.Fatal(err)
			}
			for i, result := range response.GetResponses()[0].GetResults() {
				if result.GetStatus() != "permit" || !bytes.Equal(opened(t, client, response, result.GetKasWrappedKey()), dataKey) {
					t.Errorf("object %d of the type %s: found %v", i, objects[i].GetKeyType(), result)
				}
			}
		})
	}
}

func TestWhatDependsOnASecretFailsWithOneText(t *testing.T) {
	x := start(t, setting{rules: tdfpolicy.Rules{AllowWithoutAttributes: true}})
	client := parseKey(t, privateKeys()[wrapping.P256])
	body, other := policyBody(plainPolicy), policyBody(`{"uuid":"2","body":{"dataAttributes":[],"dissem":[]}}`)
	attack := map[string]func(object *kas.KeyAccess, sent *string){
		"another policy": func(_ *kas.KeyAccess, sent *string) { *sent = other },
		"a policy with a forbidden attribute": func(_ *kas.KeyAccess, sent *string) {
			*sent = policyBody(`{"body":{"dataAttributes":[{"attribute":"https://a/attr/b/value/c"}]}}`)
		},
		"a policy that is no JSON":     func(_ *kas.KeyAccess, sent *string) { *sent = policyBody("{") },
		"a policy that is not base64":  func(_ *kas.KeyAccess, sent *string) { *sent = "{" },
		"no policy":                    func(_ *kas.KeyAccess, sent *string) { *sent = "" },
		"another binding":              func(o *kas.KeyAccess, _ *string) { o.PolicyBinding.Hash = bind(newDataKey(), body, true) },
		"a binding that is not base64": func(o *kas.KeyAccess, _ *string) { o.PolicyBinding.Hash = "?" },
		"an empty binding":             func(o *kas.KeyAccess, _ *string) { o.PolicyBinding.Hash = "" },
		"a short binding":              func(o *kas.KeyAccess, _ *string) { o.PolicyBinding.Hash = o.PolicyBinding.Hash[:40] },
		"no binding":                   func(o *kas.KeyAccess, _ *string) { o.PolicyBinding = nil },
		"a changed wrapped key":        func(o *kas.KeyAccess, _ *string) { o.WrappedKey[len(o.WrappedKey)-1] ^= 1 },
		"a changed beginning":          func(o *kas.KeyAccess, _ *string) { o.WrappedKey[0] ^= 1 },
		"a short wrapped key":          func(o *kas.KeyAccess, _ *string) { o.WrappedKey = o.WrappedKey[:5] },
		"no wrapped key":               func(o *kas.KeyAccess, _ *string) { o.WrappedKey = nil },
		"an id of no key":              func(o *kas.KeyAccess, _ *string) { o.Kid = "nobody" },
		"the id of a key of another type": func(o *kas.KeyAccess, _ *string) {
			o.Kid = map[bool]string{true: "rsa-2048", false: "mlkem-768"}[o.Kid != "rsa-2048"]
		},
		"an ephemeral key that is no key": func(o *kas.KeyAccess, _ *string) { o.EphemeralPublicKey = "?"; o.KeyType = "ec-wrapped" },
		"the type of another key": func(o *kas.KeyAccess, _ *string) {
			o.KeyType = map[bool]string{true: "wrapped", false: "mlkem-wrapped"}[o.KeyType != "wrapped"]
		},
	}
	for _, algorithm := range []wrapping.Algorithm{wrapping.RSA2048, wrapping.P256, wrapping.MLKEM768, wrapping.XWing} {
		for name, change := range attack {
			t.Run(string(algorithm)+" with "+name, func(t *testing.T) {
				sent := body
				dataKey := newDataKey()
				object := wrap(t, algorithm, dataKey, body)
				change(object, &sent)
				response, err := x.rewrap(t, x.sign(ask(t, client, sent, object)))
				if err != nil {
					t.Fatal(err)
				}
				result := response.GetResponses()[0].GetResults()[0]
				if result.GetStatus() != "fail" || result.GetError() != badRequest || len(result.GetKasWrappedKey()) > 0 || len(result.GetMetadata()) > 0 {
					t.Errorf("found %v, expected the failure %q", result, badRequest)
				}
			})
		}
	}
}

func TestAPolicyThatCannotBeReadFailsAlthoughItIsBound(t *testing.T) {
	x := start(t, setting{})
	client, dataKey := parseKey(t, privateKeys()[wrapping.P256]), newDataKey()
	for _, body := range []string{"", "?", policyBody("{"), policyBody("{}"), policyBody(`{"body":{"dataAttributes":[{}]}}`)} {
		response, err := x.rewrap(t, x.sign(ask(t, client, body, wrap(t, wrapping.P256, dataKey, body))))
		if err != nil {
			t.Fatal(err)
		}
		if result := response.GetResponses()[0].GetResults()[0]; result.GetError() != badRequest {
			t.Errorf("the policy %q: found %v", body, result)
		}
	}
}

func TestADataKeyOfAnotherSizeFails(t *testing.T) {
	x := start(t, setting{})
	client, body := parseKey(t, privateKeys()[wrapping.P256]), policyBody(plainPolicy)
	for _, size := range []int{0, 1, 16, 31, 33, 64} {
		dataKey := make([]byte, size)
		response, err := x.rewrap(t, x.sign(ask(t, client, body, wrap(t, wrapping.RSA2048, dataKey, body))))
		if err != nil {
			t.Fatal(err)
		}
		if text := response.GetResponses()[0].GetResults()[0].GetError(); text != badRequest {
			t.Errorf("%d bytes: found the failure %q", size, text)
		}
	}
}

func TestResultsHaveTheOrderOfTheRequest(t *testing.T) {
	x := start(t, setting{})
	client, dataKey, body := parseKey(t, privateKeys()[wrapping.RSA2048]), newDataKey(), policyBody(plainPolicy)
	bad := wrap(t, wrapping.P384, dataKey, body)
	bad.Kid = "nobody"
	nano := wrap(t, wrapping.P256, dataKey, body)
	nano.Header = []byte("L1L")
	strange := wrap(t, wrapping.P256, dataKey, body)
	strange.KeyType = "remote"
	good := func() *kas.KeyAccess { return wrap(t, wrapping.P256, dataKey, body) }
	first := ask(t, client, body, good(), bad, nano, good(), strange, good())

	message := &kas.UnsignedRewrapRequest{}
	if err := protojson.Unmarshal([]byte(first), message); err != nil {
		t.Fatal(err)
	}
	message.Requests = append(message.Requests, &kas.UnsignedRewrapRequest_WithPolicyRequest{
		Policy:           &kas.UnsignedRewrapRequest_WithPolicy{Id: "second", Body: body},
		KeyAccessObjects: []*kas.UnsignedRewrapRequest_WithKeyAccessObject{{KeyAccessObjectId: "only", KeyAccessObject: good()}},
	})
	response, err := x.rewrap(t, x.sign(asJSON(t, message)))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, answered := range response.GetResponses() {
		for _, result := range answered.GetResults() {
			found = append(found, answered.GetPolicyId()+" "+result.GetKeyAccessObjectId()+" "+result.GetStatus())
		}
	}
	expected := "policy a permit, policy b fail, policy c fail, policy d permit, policy e fail, policy f permit, second only permit"
	if strings.Join(found, ", ") != expected {
		t.Errorf("found %s, expected %s", strings.Join(found, ", "), expected)
	}
	for i, part := range map[int]string{2: "NanoTDF", 4: `found the type "remote"`} {
		if text := response.GetResponses()[0].GetResults()[i].GetError(); !strings.Contains(text, part) || strings.Contains(text, "bad request") {
			t.Errorf("object %d: found the failure %q, expected one with %q", i, text, part)
		}
	}
}

func TestARequestOfTheFirstVersionHasOneResult(t *testing.T) {
	x := start(t, setting{})
	client, dataKey, body := parseKey(t, privateKeys()[wrapping.RSA2048]), newDataKey(), policyBody(plainPolicy)
	object := wrap(t, wrapping.RSA2048, dataKey, body)
	first := asJSON(t, &kas.UnsignedRewrapRequest{ClientPublicKey: client.Public(), KeyAccess: object, Policy: body, Algorithm: "rsa:2048"})
	textual := strings.ReplaceAll(strings.ReplaceAll(first, " ", ""), `{"alg":"HS256","hash":"`+object.GetPolicyBinding().GetHash()+`"}`, `"`+object.GetPolicyBinding().GetHash()+`"`)
	textual = strings.ReplaceAll(strings.ReplaceAll(textual, "BEGINPUBLICKEY", "BEGIN PUBLIC KEY"), "ENDPUBLICKEY", "END PUBLIC KEY")
	if !strings.Contains(textual, `"policyBinding":"`) {
		t.Fatalf("the test has not changed the binding: %s", textual)
	}
	for name, request := range map[string]string{"a binding as an object": first, "a binding as a text": textual} {
		t.Run(name, func(t *testing.T) {
			response, err := x.rewrap(t, x.sign(request))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(opened(t, client, response, response.GetEntityWrappedKey()), dataKey) {
				t.Error("found another data key")
			}
		})
	}
	object.WrappedKey[9] ^= 1
	_, err := x.rewrap(t, x.sign(asJSON(t, &kas.UnsignedRewrapRequest{ClientPublicKey: client.Public(), KeyAccess: object, Policy: body})))
	if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), badRequest) {
		t.Errorf("a changed wrapped key: found %v", err)
	}
}

func TestRulesDecideWhoMayHaveADataKey(t *testing.T) {
	const secret = "https://example.com/attr/level/value/secret"
	log := &written{}
	x := start(t, setting{log: log, rules: tdfpolicy.Rules{Attributes: []tdfpolicy.Rule{{Attribute: secret, Claim: []string{"clearance"}, AnyOf: []string{"secret"}}}}})
	client, dataKey := parseKey(t, privateKeys()[wrapping.P256]), newDataKey()
	body := policyBody(`{"body":{"dataAttributes":[{"attribute":"` + secret + `"}]}}`)
	for level, expected := range map[string]string{"secret": "", "public": forbidden} {
		claims := x.issuer.Claims("alice", x.prover.Key)
		claims["clearance"] = level
		x.token = x.issuer.Token(claims)
		response, err := x.rewrap(t, x.sign(ask(t, client, body, wrap(t, wrapping.P256, dataKey, body))))
		if err != nil {
			t.Fatal(err)
		}
		if result := response.GetResponses()[0].GetResults()[0]; result.GetError() != expected {
			t.Errorf("clearance %s: found %v, expected the failure %q", level, result, expected)
		}
		object := wrap(t, wrapping.P256, dataKey, body)
		signed := x.sign(asJSON(t, &kas.UnsignedRewrapRequest{ClientPublicKey: client.Public(), KeyAccess: object, Policy: body}))
		if status, text := x.rewrapPlain(t, `{"signed_request_token":"`+signed+`"}`); (status == http.StatusForbidden) != (expected != "") {
			t.Errorf("clearance %s: found status %d: %s", level, status, text)
		}
	}
	if !strings.Contains(log.String(), "access to a data key denied") || strings.Contains(log.String(), base64.StdEncoding.EncodeToString(dataKey)) {
		t.Errorf("found the log %s", log)
	}
}

func TestARequestThatCannotBeReadIsRefusedWithASentence(t *testing.T) {
	x := start(t, setting{limits: request.Limits{Objects: 2, Policy: 100}, bodyBytes: 64 << 10})
	client, dataKey, body := parseKey(t, privateKeys()[wrapping.P256]), newDataKey(), policyBody(plainPolicy)
	good := func() *kas.KeyAccess { return wrap(t, wrapping.P256, dataKey, body) }
	long := policyBody(strings.Repeat(" ", 100))
	another, err := issuer.NewKey(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		signed string
		code   connect.Code
		part   string
	}{
		"no token":                {"", connect.CodeUnauthenticated, "is no JWS"},
		"no JWS":                  {"a.b", connect.CodeUnauthenticated, "is no JWS"},
		"the key of another":      {signWith(another, ask(t, client, body, good())), connect.CodeUnauthenticated, "not of the key that the DPoP proof is signed with"},
		"no JSON":                 {x.sign("{"), connect.CodeInvalidArgument, "is no JSON"},
		"a list":                  {x.sign("[]"), connect.CodeInvalidArgument, "no UnsignedRewrapRequest"},
		"nothing":                 {x.sign("{}"), connect.CodeInvalidArgument, "neither requests nor keyAccess"},
		"no objects":              {x.sign(ask(t, client, body)), connect.CodeInvalidArgument, "found 0 key access objects, expected 1 to 2"},
		"too many objects":        {x.sign(ask(t, client, body, good(), good(), good())), connect.CodeInvalidArgument, "found 3 key access objects, expected 1 to 2"},
		"a policy that is large":  {x.sign(ask(t, client, long, good())), connect.CodeInvalidArgument, "found a policy of 136 bytes in base64, expected at most 100"},
		"no key of the client":    {x.sign(strings.ReplaceAll(ask(t, client, body, good()), "BEGIN PUBLIC", "BEGIN")), connect.CodeInvalidArgument, "clientPublicKey has no complete PEM block"},
		"a request that is large": {strings.Repeat("a", 65<<10), connect.CodeResourceExhausted, "65536"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := x.rewrap(t, c.signed)
			if connect.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.part) {
				t.Errorf("Connect: found %v, expected the code %s and %q", err, c.code, c.part)
			}
			status, text := x.rewrapPlain(t, `{"signedRequestToken":"`+c.signed+`"}`)
			expected := map[connect.Code]int{connect.CodeUnauthenticated: 401, connect.CodeInvalidArgument: 400, connect.CodeResourceExhausted: 413}[c.code]
			if status != expected || !strings.Contains(string(text), c.part) {
				t.Errorf("plain JSON: found status %d: %s, expected %d and %q", status, text, expected, c.part)
			}
		})
	}
}
