// SPDX-License-Identifier: Apache-2.0

package kmsplugin

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/blob"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

const (
	// apiVersion is the version of the protocol in Status.
	apiVersion = "v2"
	// healthy is the value in Status if Encrypt and Decrypt work.
	healthy = "ok"
	// maxCiphertext is the size in bytes of the largest ciphertext that the API server takes.
	maxCiphertext = 1 << 10
	// maxPlaintext is the size in bytes of the largest plaintext. The API server encrypts keys of
	// 32 bytes.
	maxPlaintext = 256
	// callTimeout is how long a call may wait for the key manager. It is less than the 3 seconds
	// that the API server waits by default, so that the API server gets an error with a reason.
	callTimeout = 2 * time.Second
)

// wrapping is the algorithm of ciphertexts. Every key manager with AES keys has it, and it binds
// a wrapped key to its context.
const wrapping = algorithm.WrapAESGCM

// purpose is the context that ciphertexts are bound to. It never changes.
var purpose = []byte("cryptobroker.io/kubernetes-kms-v2")

// Options of a plugin.
type Options struct {
	// Keys finds keys by <provider>/<id>.
	Keys keys.Provider
	// Key is the key that new data is wrapped with: <provider>/<id>.
	Key string
	// OldKeys are keys that only unwrap: <provider>/<id>.
	OldKeys []string
	Logger  *slog.Logger
	// Metrics count the calls of the plugin, and of no other plugin. They may be nil.
	Metrics *Metrics
	// Now returns the time. It may be nil.
	Now func() time.Time
}

// Validate returns what is wrong with the ids of the keys.
func (o *Options) Validate() error {
	seen := map[string]bool{}
	for _, id := range append([]string{o.Key}, o.OldKeys...) {
		if provider, _ := keys.SplitID(id); provider == "" || !keyrules.ValidID(id) {
			return fmt.Errorf("found %q, expected the name of a key provider, a slash and the id of a key, such as bao/cluster-secrets", id)
		}
		if seen[id] {
			return fmt.Errorf("found the key %q twice, expected each key once", id)
		}
		seen[id] = true
	}
	return nil
}

// Plugin is a KMS plugin. It implements the service of the protocol.
type Plugin struct {
	kmsapi.UnimplementedKeyManagementServiceServer

	options  Options
	checking singleflight.Group

	mu   sync.Mutex
	last *check // nil if nothing is known
	// generation counts calls of Forget. A check that began in an earlier generation is not kept.
	generation int
	// reported is the last logged health: a problem, or the id of the key.
	reported string
}

// New returns a plugin. The options have to be valid.
func New(o Options) *Plugin {
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Plugin{options: o}
	if o.Metrics != nil {
		o.Metrics.plugin = p
	}
	return p
}

// Encrypt implements the service.
func (p *Plugin) Encrypt(ctx context.Context, in *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	defer clear(in.GetPlaintext())
	if n := len(in.GetPlaintext()); n == 0 || n > maxPlaintext {
		return nil, status.Errorf(codes.InvalidArgument, "found a plaintext of %d bytes, expected a key of 1 to %d bytes", n, maxPlaintext)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c := p.current(ctx)
	if c.err != nil {
		return nil, p.refuse(ctx, "Encrypt", in.GetUid(), p.options.Key, c.err)
	}
	ciphertext, err := c.key.seal(ctx, in.GetPlaintext())
	if err != nil {
		p.Forget()
		return nil, p.refuse(ctx, "Encrypt", in.GetUid(), p.options.Key, err)
	}
	p.options.Logger.Info("a key of the API server is wrapped", "uid", shorten(in.GetUid()), "keyId", c.key.id, "key", p.options.Key, "keyVersion", c.key.header.KeyVersion)
	return &kmsapi.EncryptResponse{Ciphertext: ciphertext, KeyId: c.key.id}, nil
}

// Decrypt implements the service.
func (p *Plugin) Decrypt(ctx context.Context, in *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
	header, wrapped, err := p.parse(in)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	id := header.Provider + "/" + header.KeyID
	plaintext, err := p.open(ctx, header, wrapped)
	if err != nil {
		if away(err) {
			p.Forget()
		}
		return nil, p.refuse(ctx, "Decrypt", in.GetUid(), id, err)
	}
	p.options.Logger.Info("a key of the API server is unwrapped", "uid", shorten(in.GetUid()), "keyId", in.GetKeyId(), "key", id, "keyVersion", header.KeyVersion)
	return &kmsapi.DecryptResponse{Plaintext: plaintext}, nil
}

// parse returns the parts of a ciphertext. It refuses a ciphertext that the plugin cannot have
// made.
func (p *Plugin) parse(in *kmsapi.DecryptRequest) (blob.Header, []byte, error) {
	refuse := func(format string, args ...any) (blob.Header, []byte, error) {
		return blob.Header{}, nil, status.Errorf(codes.InvalidArgument, format, args...)
	}
	if n := len(in.GetCiphertext()); n > maxCiphertext {
		return refuse("the ciphertext has %d bytes, expected at most %d", n, maxCiphertext)
	}
	if n := len(in.GetAnnotations()); n > 0 {
		return refuse("found %d annotations, expected none, because the plugin makes none", n)
	}
	header, wrapped, err := blob.Parse(in.GetCiphertext())
	if err != nil {
		return refuse("the ciphertext %v", err)
	}
	if keyID(header) != in.GetKeyId() {
		return refuse("the ciphertext belongs to another key than key_id")
	}
	if id := header.Provider + "/" + header.KeyID; id != p.options.Key && !slices.Contains(p.options.OldKeys, id) {
		return blob.Header{}, nil, status.Errorf(codes.FailedPrecondition, "the ciphertext names the key %q, which is neither the key of the plugin nor one of its old keys", id)
	}
	if header.Algorithm != wrapping || header.CheckContext(purpose) != nil {
		return refuse("the ciphertext was not made by a KMS plugin of Kubernetes")
	}
	return header, wrapped, nil
}

// open unwraps with the version of the key that the header names.
func (p *Plugin) open(ctx context.Context, header blob.Header, wrapped []byte) ([]byte, error) {
	key, err := p.options.Keys.Key(ctx, keys.Name{ID: header.Provider + "/" + header.KeyID, Version: header.KeyVersion, Use: keys.Use{Operation: profile.OpUnwrapKey}})
	if err != nil {
		return nil, err
	}
	wrapper, err := wrapperOf(key)
	if err != nil {
		return nil, err
	}
	return wrapper.Unwrap(ctx, wrapping.String(), wrapped, header.Additional())
}

// Status implements the service. Its error is always nil: "healthz" says what is wrong. Without a
// working key there is no key id, and the API server stops writing after three minutes.
func (p *Plugin) Status(ctx context.Context, _ *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c := p.current(ctx)
	if c.err != nil {
		return &kmsapi.StatusResponse{Version: apiVersion, Healthz: p.sentence(p.options.Key, c.err)}, nil
	}
	return &kmsapi.StatusResponse{Version: apiVersion, Healthz: healthy, KeyId: c.key.id}, nil
}

// writeKey is a version of the key that new data is wrapped with.
type writeKey struct {
	wrapper keys.Wrapper
	header  blob.Header
	id      string
}

// seal returns the ciphertext of a plaintext.
func (k *writeKey) seal(ctx context.Context, plaintext []byte) ([]byte, error) {
	wrapped, err := k.wrapper.Wrap(ctx, wrapping.String(), plaintext, k.header.Additional())
	if err != nil {
		return nil, err
	}
	ciphertext, err := blob.Encode(k.header, wrapped)
	if err == nil && len(ciphertext) > maxCiphertext {
		err = fmt.Errorf("the ciphertext has %d bytes, and the API server takes at most %d", len(ciphertext), maxCiphertext)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", keys.ErrUnusable, err)
	}
	return ciphertext, nil
}

// wrapperOf returns the wrapper of a key if the key has the algorithm of the plugin.
func wrapperOf(key *keys.Key) (keys.Wrapper, error) {
	wrapper := key.Wrapper()
	if wrapper == nil || !slices.Contains(wrapper.Algorithms(), wrapping.String()) {
		return nil, fmt.Errorf("%w: it does not wrap with %s, expected an AES key", keys.ErrUnusable, wrapping)
	}
	return wrapper, nil
}

// keyID returns the id of the version of a key that a header names: SHA-256 in hex of the
// provider, the key and its version, each after its length.
func keyID(h blob.Header) string {
	text := slices.Clone(purpose)
	for _, part := range []string{h.Provider, h.KeyID, h.KeyVersion} {
		text = binary.BigEndian.AppendUint32(text, uint32(len(part)))
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// shorten cuts the uid of a request, which may be of any length, for the log.
func shorten(uid string) string { return uid[:min(len(uid), 64)] }
