// SPDX-License-Identifier: Apache-2.0

package keyaccess_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/datakeycache"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/federation"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/keyring"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/limit"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/request"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

const audience = "key-access"

// privateKeys are private keys in PEM by their algorithm, which all tests share.
var privateKeys = sync.OnceValue(func() map[wrapping.Algorithm]string {
	all := map[wrapping.Algorithm]string{}
	add := func(algorithm wrapping.Algorithm, key any, err error) {
		if err != nil {
			panic(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			panic(err)
		}
		all[algorithm] = encode(der)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	add(wrapping.RSA2048, rsaKey, err)
	for algorithm, curve := range map[wrapping.Algorithm]elliptic.Curve{wrapping.P256: elliptic.P256(), wrapping.P384: elliptic.P384(), wrapping.P521: elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		add(algorithm, key, err)
	}
	for algorithm, last := range map[wrapping.Algorithm]int{wrapping.MLKEM768: 2, wrapping.MLKEM1024: 3} {
		seed := make([]byte, mlkem.SeedSize)
		_, _ = rand.Read(seed)
		all[algorithm] = mlkemPEM(last, seed)
	}
	seed := make([]byte, 32)
	_, _ = rand.Read(seed)
	all[wrapping.XWing] = seededPEM(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 62253, 25722}, seed)
	return all
})

func encode(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// mlkemPEM returns a private key of ML-KEM with its seed: RFC 9935, section 6.
func mlkemPEM(last int, seed []byte) string {
	inner, err := asn1.MarshalWithParams(seed, "tag:0")
	if err != nil {
		panic(err)
	}
	return seededPEM(asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 4, last}, inner)
}

// seededPEM returns a private key in PKCS #8.
func seededPEM(algorithm asn1.ObjectIdentifier, content []byte) string {
	der, err := asn1.Marshal(struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       []byte
	}{0, pkix.AlgorithmIdentifier{Algorithm: algorithm}, content})
	if err != nil {
		panic(err)
	}
	return encode(der)
}

func parseKey(t testing.TB, text string) wrapping.Key {
	t.Helper()
	key, err := wrapping.ParseKey([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// setting has the settings of a service that a test can change.
type setting struct {
	rules       tdfpolicy.Rules
	authorizer  tdfpolicy.Authorizer // if it is nil, the rules decide
	fips        bool
	limits      request.Limits
	bodyBytes   int
	time        time.Duration
	plainBearer bool
	log         *written
	rates       *limit.Rates
	shedder     *limit.Shedder
	peerShedder *limit.Shedder
	peers       *federation.Peers
	observer    keyaccess.Observer
	manager     *manager // the key manager with the keys managed-rsa and managed-ec, or nil
	dataKeys    *datakeycache.Cache
}

// written is the content of a log. Requests write it, and tests read it.
type written struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *written) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(line)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// service is a service that runs, and a client of it.
type service struct {
	*httptest.Server
	handler atomic.Pointer[http.Handler]
	issuer  *issuer.Issuer
	prover  issuer.Prover
	token   string
}

func start(t testing.TB, s setting) *service {
	t.Helper()
	x := listen(t, issuer.Start(t, issuer.Options{Audience: audience}))
	x.serve(t, s)
	return x
}

// listen returns a service that has a URL, and that does not answer until serve is called.
func listen(t testing.TB, from *issuer.Issuer) *service {
	t.Helper()
	key, err := issuer.NewKey(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	x := &service{issuer: from, prover: issuer.Prover{Key: key, Algorithm: jose.ES256}}
	x.token = x.issuer.Token(x.issuer.Claims("alice", key))
	x.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*x.handler.Load()).ServeHTTP(w, r) }))
	x.EnableHTTP2 = true
	x.StartTLS()
	t.Cleanup(x.Close)
	return x
}

// serve has the service answer.
func (x *service) serve(t testing.TB, s setting) {
	t.Helper()
	if s.rules.Check() != nil {
		s.rules = tdfpolicy.Rules{AllowAllAuthenticated: true}
	}
	if s.limits == (request.Limits{}) {
		s.limits = request.Limits{Objects: 20, Policy: 4096}
	}
	if s.bodyBytes == 0 {
		s.bodyBytes = 1 << 20
	}
	if s.time == 0 {
		s.time = time.Hour
	}
	keys := map[string]wrapping.Key{}
	for algorithm, text := range privateKeys() {
		keys[strings.ReplaceAll(string(algorithm), ":", "-")] = parseKey(t, text)
	}
	if s.manager != nil {
		s.manager.addTo(t, keys)
	}
	ring, err := keyring.NewRing(keys, []string{"rsa-2048", "ec-secp256r1"})
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := caller.New(caller.Config{URLs: []string{x.URL}, Issuers: []caller.Issuer{{
		URL: x.issuer.URL, Audiences: []string{audience}, Authorities: x.issuer.Authorities(), PlainBearer: s.plainBearer,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(verifier.Close)
	if s.authorizer == nil {
		s.authorizer = &s.rules
	}
	logger := slog.New(slog.DiscardHandler)
	if s.log != nil {
		logger = slog.New(slog.NewTextHandler(s.log, nil))
	}
	handler := keyaccess.New(keyaccess.Options{
		URL: x.URL, Issuer: x.issuer.URL, Keys: func() *keyring.Ring { return ring }, Verifier: verifier, Authorizer: s.authorizer,
		Limits: keyaccess.Limits{BodyBytes: s.bodyBytes, Time: s.time, Limits: s.limits}, FIPS: s.fips, Logger: logger,
		Rates: s.rates, Shedder: s.shedder, Peers: s.peers, PeerShedder: s.peerShedder, Observer: s.observer,
		DataKeys: s.dataKeys, Providers: s.manager.generation,
	}).Handler()
	x.handler.Store(&handler)
}

// credentials adds a token and a fresh proof to a header.
func (x *service) credentials(header http.Header, path string) {
	header.Set("Authorization", "DPoP "+x.token)
	header.Set("DPoP", x.prover.Proof(http.MethodPost, x.URL+path, x.token))
}

// sign signs a request with the key of the proofs.
func (x *service) sign(body string) string { return signWith(x.prover.Key, body) }

func signWith(key crypto.Signer, body string) string {
	return issuer.Sign(jose.JSONWebKey{Key: key, Algorithm: string(jose.ES256)}, map[string]any{}, map[string]any{
		"requestBody": body, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(),
	})
}

// plainPolicy is a policy without attributes.
const plainPolicy = `{"uuid":"1","body":{"dataAttributes":[],"dissem":[]}}`

// wrap returns an object as a client makes it for a key of the service.
func wrap(t testing.TB, algorithm wrapping.Algorithm, dataKey []byte, body string) *kas.KeyAccess {
	t.Helper()
	recipient, err := wrapping.NewRecipient(parseKey(t, privateKeys()[algorithm]).Public(), false)
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := recipient.Wrap(dataKey)
	if err != nil {
		t.Fatal(err)
	}
	return &kas.KeyAccess{
		KeyType: string(algorithm.Type()), Kid: strings.ReplaceAll(string(algorithm), ":", "-"), Protocol: "kas", WrappedKey: wrapped,
		EphemeralPublicKey: recipient.SessionKey(), PolicyBinding: &kas.PolicyBinding{Algorithm: "HS256", Hash: bind(dataKey, body, true)},
	}
}

// bind binds a policy to a data key, as hexadecimal digits or as bytes.
func bind(dataKey []byte, body string, asHex bool) string {
	mac := hmac.New(sha256.New, dataKey)
	mac.Write([]byte(body))
	sum := mac.Sum(nil)
	if asHex {
		sum = []byte(hex.EncodeToString(sum))
	}
	return base64.StdEncoding.EncodeToString(sum)
}

func newDataKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return key
}

func policyBody(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// ask returns a request for objects of one policy, as JSON.
func ask(t testing.TB, client wrapping.Key, body string, objects ...*kas.KeyAccess) string {
	t.Helper()
	wanted := &kas.UnsignedRewrapRequest_WithPolicyRequest{Policy: &kas.UnsignedRewrapRequest_WithPolicy{Id: "policy", Body: body}}
	for i, object := range objects {
		wanted.KeyAccessObjects = append(wanted.KeyAccessObjects, &kas.UnsignedRewrapRequest_WithKeyAccessObject{KeyAccessObjectId: string(rune('a' + i)), KeyAccessObject: object})
	}
	return asJSON(t, &kas.UnsignedRewrapRequest{ClientPublicKey: client.Public(), Requests: []*kas.UnsignedRewrapRequest_WithPolicyRequest{wanted}})
}

func asJSON(t testing.TB, message *kas.UnsignedRewrapRequest) string {
	t.Helper()
	text, err := protojson.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// opened returns the data key of a result for a client.
func opened(t testing.TB, client wrapping.Key, response *kas.RewrapResponse, wrapped []byte) []byte {
	t.Helper()
	dataKey, err := client.Unwrap(context.Background(), wrapping.Wrapped{Type: client.Algorithm().Type(), Key: wrapped, Ephemeral: response.GetSessionPublicKey()})
	if err != nil {
		t.Fatal(err)
	}
	return dataKey
}
