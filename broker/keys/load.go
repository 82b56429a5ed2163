// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

// loaded is a key that was read. If its files have not changed, the next look uses the same key,
// so that its count of random nonces continues.
type loaded struct {
	key    *Key // nil if its files were never valid
	digest [sha256.Size]byte
}

// load reads the files of a key. before is the key that was loaded for the same id before. The
// only error is regular.ErrBeingWritten.
func load(dir string, f files, before *loaded) (*loaded, []Problem, error) {
	var problems []Problem
	complain := func(path, format string, args ...any) {
		problems = append(problems, Problem{Path: path, Key: f.id, Message: fmt.Sprintf(format, args...)})
	}
	bad := func() (*loaded, []Problem, error) {
		if before != nil && before.key != nil {
			return before, problems, nil
		}
		return &loaded{}, problems, nil
	}

	if len(f.twice) > 0 {
		complain(f.twice[0], "exists as well as %s for the same key, expected only one of them", strings.Join(existing(f.paths), ", "))
		return bad()
	}
	if f.paths[rawKey] != "" && len(existing(f.paths)) > 1 {
		complain(f.paths[rawKey], "exists as well as %s for the same key, expected either an AES key or a key pair", strings.Join(existing(f.paths), ", "))
		return bad()
	}

	var content [roles][]byte
	defer func() {
		for _, data := range content {
			clear(data)
		}
	}()
	digest := sha256.New()
	for r, path := range f.paths {
		if path == "" {
			continue
		}
		data, warning, err := read(dir, path, role(r), digest)
		content[r] = data
		switch {
		case errors.Is(err, regularfile.ErrBeingWritten):
			return nil, nil, err
		case err != nil:
			complain(path, "%s", err.Error())
			return bad()
		case warning != "":
			problems = append(problems, Problem{Path: path, Key: f.id, Message: warning, Warning: true})
		}
	}
	next := &loaded{}
	digest.Sum(next.digest[:0])
	if before != nil && before.key != nil && before.digest == next.digest {
		next = before
	} else {
		key, path, err := build(f, content)
		if err != nil {
			complain(path, "%s", err.Error())
			return bad()
		}
		next.key = key
	}
	if warning := validity(next.key, time.Now()); warning != "" {
		problems = append(problems, Problem{Path: f.paths[certificates], Key: f.id, Message: warning, Warning: true})
	}
	return next, problems, nil
}

// validity returns a warning if the key's certificate is not valid now. The key is used in
// spite of that. Operations that need the certificate check it.
func validity(key *Key, now time.Time) string {
	if len(key.chain) == 0 {
		return ""
	}
	switch certificate := key.chain[0]; {
	case now.After(certificate.NotAfter):
		return "has a certificate that expired at " + certificate.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(certificate.NotBefore):
		return "has a certificate that is not valid before " + certificate.NotBefore.UTC().Format(time.RFC3339)
	default:
		return ""
	}
}

// build makes a key of the contents of its files. The error is about the file path.
func build(f files, content [roles][]byte) (key *Key, path string, err error) {
	if path = f.paths[rawKey]; path != "" {
		key, err := NewAES(f.id, content[rawKey])
		if err != nil {
			return nil, path, fmt.Errorf("%w, without any encoding and without a newline at the end", err)
		}
		return key, path, nil
	}
	var signer crypto.Signer
	var public crypto.PublicKey
	var chain []*x509.Certificate
	if path = f.paths[privateKey]; path != "" {
		if signer, err = ParseSigner(content[privateKey], algorithm.MaxRSASize); err != nil {
			return nil, path, err
		}
		public = signer.Public()
	}
	if path = f.paths[publicKey]; path != "" {
		given, err := parsePublic(content[publicKey], algorithm.MaxRSASize)
		if err != nil {
			return nil, path, err
		}
		if public != nil && !engine.SamePublicKey(public, given) {
			return nil, path, errors.New("has a public key that does not belong to the private key beside it")
		}
		public = given
	}
	if path = f.paths[certificates]; path != "" {
		if chain, err = ParseCertificates(content[certificates], algorithm.MaxRSASize); err != nil {
			return nil, path, err
		}
		if public == nil {
			public = chain[0].PublicKey
		}
		if !engine.SamePublicKey(public, chain[0].PublicKey) {
			return nil, path, errors.New("has a certificate that does not belong to the key beside it")
		}
	}
	path = existing(f.paths)[0]
	if signer != nil {
		key, err = NewSigning(f.id, signer, chain)
	} else {
		key, err = NewVerifying(f.id, public, chain)
	}
	return key, path, err
}

// read returns the content of a file and adds it to the digest of its key.
func read(dir, path string, r role, digest hash.Hash) (data []byte, warning string, err error) {
	name := filepath.Join(dir, path)
	data, info, err := regularfile.Read(name, MaxFileSize)
	switch {
	case errors.Is(err, regularfile.ErrBeingWritten):
		return nil, "", err
	case errors.Is(err, regularfile.ErrNotRegular):
		return nil, "", regularfile.ErrNotRegular
	case err != nil:
		return nil, "", errors.New("cannot be read: " + reason(err))
	case info.Size() > MaxFileSize:
		return data, "", fmt.Errorf("has %d bytes, expected at most %d", info.Size(), MaxFileSize)
	}
	fmt.Fprintf(digest, "%d %d ", r, len(data))
	digest.Write(data)
	if r == privateKey || r == rawKey {
		warning = permissions(name, info.Mode())
	}
	return data, warning, nil
}

// permissions returns a warning if too many users may read or change a file with a secret.
// Everybody may read files in a volume of a kubelet, because only the broker mounts the volume,
// and the broker may run as any user.
func permissions(name string, mode fs.FileMode) string {
	switch perm := mode.Perm(); {
	case perm&0o022 != 0:
		return fmt.Sprintf("is a secret that other users than its owner may change (mode %04o), expected 0600 or 0640", perm)
	case perm&0o004 != 0 && !ofKubelet(name):
		return fmt.Sprintf("is a secret that every user may read (mode %04o), expected 0600 or 0640", perm)
	default:
		return ""
	}
}

// WarnOfMode returns a warning if too many users may read or change a file with a secret. It
// returns an empty text for a file that cannot be examined, because reading that file fails as
// well.
func WarnOfMode(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	return permissions(name, info.Mode())
}

// ofKubelet reports whether a file is in a volume that a kubelet made. Such a volume has the
// link "..data".
func ofKubelet(name string) bool {
	for dir, levels := filepath.Dir(name), 0; levels < 2; dir, levels = filepath.Dir(dir), levels+1 {
		if info, err := os.Lstat(filepath.Join(dir, watch.DataLink)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

func existing(paths [roles]string) []string {
	return slices.DeleteFunc(slices.Clone(paths[:]), func(path string) bool { return path == "" })
}
