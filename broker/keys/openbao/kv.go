// SPDX-License-Identifier: Apache-2.0

package openbao

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/keycache"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/broker/pemtext"
)

// KV is the provider of keys in a key-value engine, version 2, which the broker reads. The id
// of a key is the path of its secret, and the version is the version of the secret. The fields
// are the same as in released brokers: "key" is in hexadecimal digits, and "certificate" is PEM.
type KV struct {
	*manager

	mu sync.Mutex
	// seen are digests of the secrets of the keys. A key whose secret has not changed stays the
	// same key, so that its count of random nonces continues.
	seen map[keys.Name][sha256.Size]byte
}

// secret is a reply of the engine.
type secret struct {
	Data struct {
		Data *struct {
			Key         text `json:"key"`
			Certificate text `json:"certificate"`
		} `json:"data"`
		Metadata struct {
			Version int `json:"version"`
		} `json:"metadata"`
	} `json:"data"`
}

func (kv *KV) find(ctx context.Context, name keys.Name, before *keys.Key) (*keys.Key, error) {
	path, ok := escapePath(name.ID)
	if !ok {
		return nil, keys.ErrNotFound
	}
	path = kv.mount + "/data/" + path
	if name.Version != "" {
		if n, err := strconv.Atoi(name.Version); err != nil || n < 1 {
			return nil, fmt.Errorf("%w: found the version %q, expected a number", keys.ErrNotFound, name.Version)
		}
		path += "?version=" + url.QueryEscape(name.Version)
	}
	var found secret
	if err := kv.call(ctx, pool.Repeatable, http.MethodGet, path, nil, &found); err != nil {
		return nil, err
	}
	fields := found.Data.Data
	if fields == nil {
		return nil, fmt.Errorf("%w: the secret %s has no data, expected one of a key-value engine of version 2", keys.ErrUnusable, name.ID)
	}
	defer clear(fields.Key)
	digest := sha256.New()
	fmt.Fprintf(digest, "%d ", len(fields.Key))
	digest.Write(fields.Key)
	digest.Write(fields.Certificate)
	if kv.unchanged(name, [sha256.Size]byte(digest.Sum(nil))) && before != nil {
		return before.WithVersion(strconv.Itoa(found.Data.Metadata.Version)), nil
	}
	key, err := parseSecret(name.ID, fields.Key, fields.Certificate)
	if err != nil {
		return nil, fmt.Errorf("%w: the secret %s %w", keys.ErrUnusable, name.ID, err)
	}
	return key.WithVersion(strconv.Itoa(found.Data.Metadata.Version)), nil
}

// unchanged reports whether a secret has not changed since the last call, and remembers it.
func (kv *KV) unchanged(name keys.Name, digest [sha256.Size]byte) bool {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	before, ok := kv.seen[name]
	if len(kv.seen) >= keycache.MaxKeys {
		clear(kv.seen)
	}
	kv.seen[name] = digest
	return ok && before == digest
}

// parseSecret returns the key of a secret. Its error continues a sentence that begins with the
// secret, and has no part of the key.
func parseSecret(id string, content, certificate []byte) (*keys.Key, error) {
	var chain []*x509.Certificate
	if len(certificate) > 0 {
		var err error
		if chain, err = keys.ParseCertificates(certificate, algorithm.MaxRSASize); err != nil {
			return nil, fmt.Errorf("has a field \"certificate\" that %w", err)
		}
	}
	if len(content) == 0 {
		if chain == nil {
			return nil, errors.New("has no field \"key\" with text, expected hexadecimal digits")
		}
		return keys.NewVerifying(id, chain[0].PublicKey, chain)
	}
	raw := content
	if !bytes.HasPrefix(pemtext.WithoutMark(content), []byte("-----BEGIN ")) {
		raw = make([]byte, hex.DecodedLen(len(content)))
		defer clear(raw)
		if _, err := hex.Decode(raw, content); err != nil { // whose error has a digit of the key
			return nil, errors.New("has a field \"key\" that is neither PEM nor hexadecimal digits, two for each byte and no 0x in front")
		}
	}
	switch len(raw) {
	case 16, 24, 32:
		if chain != nil {
			return nil, errors.New("has a certificate together with an AES key, expected a key pair")
		}
		return keys.NewAES(id, raw)
	}
	signer, err := keys.ParseSigner(raw, algorithm.MaxRSASize)
	if err != nil {
		return nil, fmt.Errorf("has a field \"key\" of %d bytes, which is no AES key, and as a private key %w", len(raw), err)
	}
	return keys.NewSigning(id, signer, chain)
}
