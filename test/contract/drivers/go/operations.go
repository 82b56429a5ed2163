// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"time"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
)

// keySource is the message KeySource.
type keySource struct {
	KeyID  string  `json:"keyId"`
	RawKey *[]byte `json:"rawKey"`
}

func (k keySource) key() cryptobroker.Key {
	if k.RawKey != nil {
		return cryptobroker.RawKey(*k.RawKey)
	}
	return cryptobroker.KeyID(k.KeyID)
}

// request has the fields of the requests of all operations.
type request struct {
	Profile   string `json:"profile"`
	Input     []byte `json:"input"`
	KeySource struct {
		keySource
		Single        keySource `json:"single"`
		ComponentKeys struct {
			Keys []keySource `json:"keys"`
		} `json:"componentKeys"`
	} `json:"keySource"`
	Plaintext       []byte `json:"plaintext"`
	EncryptMetadata struct {
		Nonce []byte `json:"nonce"`
		AAD   []byte `json:"aad"`
	} `json:"encryptMetadata"`
	Ciphertext      []byte `json:"ciphertext"`
	DecryptMetadata struct {
		Nonce []byte `json:"nonce"`
		AAD   []byte `json:"aad"`
		Tag   []byte `json:"tag"`
	} `json:"decryptMetadata"`
	Signature             []byte       `json:"signature"`
	SignatureFormat       string       `json:"signatureFormat"`
	KeyID                 string       `json:"keyId"`
	Context               []byte       `json:"context"`
	WithoutDataKey        bool         `json:"withoutDataKey"`
	DataKey               []byte       `json:"dataKey"`
	WrappedKey            []byte       `json:"wrappedKey"`
	Keys                  []wrappedKey `json:"keys"`
	CSR                   string       `json:"csr"`
	CAPrivateKey          string       `json:"caPrivateKey"`
	CACert                string       `json:"caCert"`
	ValidNotBefore        int64        `json:"validNotBefore,string"`
	ValidNotAfter         int64        `json:"validNotAfter,string"`
	Subject               string       `json:"subject"`
	CRLDistributionPoints []string     `json:"crlDistributionPoints"`
	sessionRequest
}

// wrappedKey is the message WrappedKey.
type wrappedKey struct {
	WrappedKey []byte `json:"wrappedKey"`
	Context    []byte `json:"context"`
}

func (r request) wrapped() cryptobroker.WrappedKey {
	return cryptobroker.WrappedKey{WrappedKey: r.WrappedKey, Context: r.Context}
}

// signingKeys returns the key and the second key of a hybrid.
func (r request) signingKeys() (key, postQuantum cryptobroker.Key) {
	if keys := r.KeySource.ComponentKeys.Keys; len(keys) == 2 {
		return keys[0].key(), keys[1].key()
	}
	return r.KeySource.Single.key(), cryptobroker.Key{}
}

// formats are the formats of signatures by their names on the wire.
var formats = map[string]cryptobroker.SignatureFormat{
	"":                     cryptobroker.SignatureFormatDefault,
	"SIGNATURE_FORMAT_RAW": cryptobroker.SignatureFormatRaw,
	"SIGNATURE_FORMAT_DER": cryptobroker.SignatureFormatDER,
	"SIGNATURE_FORMAT_PEM": cryptobroker.SignatureFormatPEM,
	"SIGNATURE_FORMAT_CMS": cryptobroker.SignatureFormatCMS,
}

// reply has the fields of a reply.
type reply map[string]any

// with adds the algorithm and the warning, which many replies have.
func (r reply) with(algorithm string, warning *cryptobroker.Deprecation) reply {
	if algorithm != "" {
		r["descriptor"] = reply{"algorithm": algorithm}
	}
	if warning != nil {
		r["metadata"] = reply{"deprecation": reply{
			"profile": warning.Profile, "replacedBy": warning.ReplacedBy, "deprecatedSince": warning.Since,
			"removeAfter": warning.RemoveAfter, "reason": warning.Reason,
		}}
	}
	return r
}

// seconds returns the time of a field, or no time.
func seconds(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(unix, 0)
}

// operations make the calls.
var operations = map[string]func(context.Context, *cryptobroker.Client, request) (map[string]any, error){
	"Health": func(ctx context.Context, c *cryptobroker.Client, _ request) (map[string]any, error) {
		health, err := c.Health(ctx)
		return reply{"status": health.String()}, err
	},
	"HashData": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		result, err := c.HashData(ctx, cryptobroker.HashDataRequest{Profile: r.Profile, Input: r.Input})
		return reply{"hashValueRaw": result.Digest}.with(result.Algorithm, result.Deprecation), err
	},
	"HashStream": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		result, err := c.HashReader(ctx, r.Profile, bytes.NewReader(r.Input))
		return reply{"hashValueRaw": result.Digest}.with(result.Algorithm, result.Deprecation), err
	},
	"SignCertificate": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		result, err := c.SignCertificate(ctx, cryptobroker.SignCertificateRequest{
			Profile: r.Profile, CSR: []byte(r.CSR), CAPrivateKey: []byte(r.CAPrivateKey), CACertificate: []byte(r.CACert),
			NotBefore: seconds(r.ValidNotBefore), NotAfter: seconds(r.ValidNotAfter), Subject: r.Subject,
			CRLDistributionPoints: r.CRLDistributionPoints,
		})
		return reply{"der": result.Certificate}.with(result.Algorithm, result.Deprecation), err
	},
	"EncryptData": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		result, err := c.EncryptData(ctx, cryptobroker.EncryptDataRequest{
			Profile: r.Profile, Key: r.KeySource.key(), Plaintext: r.Plaintext, Nonce: r.EncryptMetadata.Nonce, AdditionalData: r.EncryptMetadata.AAD,
		})
		metadata := reply{"nonce": result.Nonce, "tag": result.Tag, "keyId": result.KeyID}
		return reply{"ciphertext": result.Ciphertext, "cipherMetadata": metadata}.with(result.Algorithm, result.Deprecation), err
	},
	"DecryptData": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		d := r.DecryptMetadata
		result, err := c.DecryptData(ctx, cryptobroker.DecryptDataRequest{
			Profile: r.Profile, Key: r.KeySource.key(), Ciphertext: r.Ciphertext, Nonce: d.Nonce, Tag: d.Tag, AdditionalData: d.AAD,
		})
		return reply{"plaintext": result.Plaintext}.with("", result.Deprecation), err
	},
	"EncryptStream": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		return streamed(func(output *bytes.Buffer) (cryptobroker.StreamResult, error) {
			return c.EncryptStream(ctx, output, bytes.NewReader(r.Input), cryptobroker.EncryptStreamRequest{Profile: r.Profile, KeyID: r.KeyID, Context: r.Context})
		})
	},
	"DecryptStream": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		return streamed(func(output *bytes.Buffer) (cryptobroker.StreamResult, error) {
			return c.DecryptStream(ctx, output, bytes.NewReader(r.Input), cryptobroker.DecryptStreamRequest{Profile: r.Profile, Context: r.Context})
		})
	},
	"SignData": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		key, postQuantum := r.signingKeys()
		result, err := c.SignData(ctx, cryptobroker.SignDataRequest{
			Profile: r.Profile, Key: key, PostQuantumKey: postQuantum, Input: r.Input, Format: formats[r.SignatureFormat],
		})
		return reply{"signature": result.Signature}.with(result.Algorithm, result.Deprecation), err
	},
	"VerifyData": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		key, postQuantum := r.signingKeys()
		result, err := c.VerifyData(ctx, cryptobroker.VerifyDataRequest{
			Profile: r.Profile, Key: key, PostQuantumKey: postQuantum, Input: r.Input, Signature: r.Signature, Format: formats[r.SignatureFormat],
		})
		return reply{"valid": result.Valid}.with("", result.Deprecation), err
	},
	"GenerateDataKey": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		result, err := c.GenerateDataKey(ctx, cryptobroker.GenerateDataKeyRequest{
			Profile: r.Profile, KeyID: r.KeyID, Context: r.Context, WithoutDataKey: r.WithoutDataKey,
		})
		return reply{"dataKey": result.DataKey, "wrappedKey": result.WrappedKey}.with(result.Algorithm, result.Deprecation), err
	},
	"WrapKey": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		result, err := c.WrapKey(ctx, cryptobroker.WrapKeyRequest{Profile: r.Profile, KeyID: r.KeyID, DataKey: r.DataKey, Context: r.Context})
		return reply{"wrappedKey": result.WrappedKey}.with(result.Algorithm, result.Deprecation), err
	},
	"UnwrapKey": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		result, err := c.UnwrapKey(ctx, cryptobroker.UnwrapKeyRequest{Profile: r.Profile, WrappedKey: r.wrapped()})
		return reply{"dataKey": result.DataKey}.with(result.Algorithm, result.Deprecation), err
	},
	"UnwrapBatch": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		var keys []cryptobroker.WrappedKey
		for _, k := range r.Keys {
			keys = append(keys, cryptobroker.WrappedKey{WrappedKey: k.WrappedKey, Context: k.Context})
		}
		result, err := c.UnwrapBatch(ctx, cryptobroker.UnwrapBatchRequest{Profile: r.Profile, Keys: keys})
		var results []reply
		for _, k := range result.Keys {
			one := reply{"dataKey": k.DataKey}
			var failed *cryptobroker.Error
			if errors.As(k.Err, &failed) {
				one = reply{"code": failed.Code, "message": failed.Message}
			}
			results = append(results, one)
		}
		return reply{"results": results}.with("", result.Deprecation), err
	},
	"RewrapKey": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		result, err := c.RewrapKey(ctx, cryptobroker.RewrapKeyRequest{Profile: r.Profile, WrappedKey: r.wrapped(), KeyID: r.KeyID})
		return reply{"wrappedKey": result.WrappedKey, "unchanged": result.Unchanged}.with(result.Algorithm, result.Deprecation), err
	},
	"GetPublicKey": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
		result, err := c.GetPublicKey(ctx, cryptobroker.GetPublicKeyRequest{Profile: r.Profile, KeyID: r.KeyID})
		return reply{"der": result.DER, "pem": string(result.PEM), "version": result.Version}.with("", result.Deprecation), err
	},
}
