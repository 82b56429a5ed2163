// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

func TestEveryKindOfFileMakesAKey(t *testing.T) {
	dir := t.TempDir()
	ecDER, err := x509.MarshalECPrivateKey(ecKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"pkcs8.key":       privatePEM(rsaKey),
		"pkcs1.key":       block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)),
		"sec1.key":        block("EC PARAMETERS", []byte{6, 0}) + block("EC PRIVATE KEY", ecDER),
		"edwards.key":     privatePEM(edKey),
		"lattice.key":     privatePEM(mlKey),
		"pair.key":        privatePEM(ecKey),
		"pair.crt":        certificate(ecKey, ecKey, nil),
		"pair.pub":        publicPEM(ecKey),
		"public.pub":      publicPEM(mlKey),
		"windows.pub":     "\ufeff" + publicPEM(ecKey),
		"trusted.crt":     certificate(rsaKey, rsaKey, nil),
		"aes128.bin":      strings.Repeat("k", 16),
		"aes192.bin":      strings.Repeat("k", 24),
		"aes256.bin":      strings.Repeat("\n", 32),
		"issuer/tls.key":  privatePEM(ecKey),
		"issuer/tls.crt":  certificate(ecKey, ecKey, nil),
		"issuer/ca.crt":   certificate(ecKey, ecKey, nil),
		"shop/orders.bin": strings.Repeat("o", 32),
		"shop/mail.key":   privatePEM(edKey),
		"shop/ca.crt":     certificate(rsaKey, rsaKey, nil), // beside no tls.key: the key "ca"
		"shop/.orders":    "nobody reads this either",
		".hidden.key":     "nobody reads this",
	} {
		write(t, filepath.Join(dir, name), content)
	}
	d := watch(t, dir)
	if e := d.next(); e.Keys != 16 || e.Unusable != 0 || len(e.Problems) != 0 || e.Err != nil {
		t.Fatalf("%+v, want 16 keys and nothing wrong", e)
	}
	for id, want := range map[string]string{
		"pkcs8":   "signs *rsa.PublicKey",
		"pkcs1":   "signs *rsa.PublicKey",
		"sec1":    "signs *ecdsa.PublicKey",
		"edwards": "signs ed25519.PublicKey",
		"lattice": "signs *mldsa.PublicKey",
		"pair":    "signs *ecdsa.PublicKey with 1 certificate",
		"public":  "verifies *mldsa.PublicKey",
		"windows": "verifies *ecdsa.PublicKey",
		"trusted": "verifies *rsa.PublicKey with 1 certificate",
		"aes128":  "encrypts with 128 bits",
		"aes192":  "encrypts with 192 bits",
		"aes256":  "encrypts with 256 bits",
		"issuer":  "signs *ecdsa.PublicKey with 1 certificate",
		"orders":  "encrypts with 256 bits",
		"mail":    "signs ed25519.PublicKey",
		"ca":      "verifies *rsa.PublicKey with 1 certificate",
	} {
		t.Run(id, func(t *testing.T) {
			key, err := d.Key(t.Context(), keys.Name{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(key); got != want || key.ID() != id {
				t.Errorf("%s %s, want %s", key.ID(), got, want)
			}
		})
	}
}

func describe(key *keys.Key) string {
	if key.Cipher(context.Background()) != nil {
		return fmt.Sprintf("encrypts with %d bits", 8*key.Cipher(context.Background()).KeySize())
	}
	text := "verifies"
	if key.Signer(context.Background()) != nil {
		text = "signs"
	}
	text += fmt.Sprintf(" %T", key.Public())
	if n := len(key.Certificates()); n > 0 {
		text += fmt.Sprintf(" with %d certificate", n)
	}
	return text
}

func TestWhatIsWrongWithAKeyIsSaidAndCostsThatKeyOnly(t *testing.T) {
	const content = "hunter2"
	other := func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: "other"} }
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"an AES key with a newline at its end": {
			map[string]string{"k.bin": strings.Repeat(content, 5)[:32] + "\n"},
			[]string{"k.bin: has 33 bytes, expected the 16, 24 or 32 bytes of an AES key, without any encoding and without a newline at the end"},
		},
		"an empty AES key": {
			map[string]string{"k.bin": ""},
			[]string{"k.bin: has 0 bytes, expected the 16, 24 or 32 bytes of an AES key, without any encoding and without a newline at the end"},
		},
		"a private key that is no PEM": {
			map[string]string{"k.key": content},
			[]string{"k.key: has no complete PEM block, expected a private key in PEM"},
		},
		"a private key with rubbish inside": {
			map[string]string{"k.key": block("PRIVATE KEY", []byte(content))},
			[]string{`k.key: has a PEM block "PRIVATE KEY" whose content is damaged or cut: its 7 bytes are not complete DER, expected a private key of PKCS #8, PKCS #1 or SEC 1`},
		},
		"an encrypted private key": {
			map[string]string{"k.key": block("ENCRYPTED PRIVATE KEY", []byte(content))},
			[]string{"k.key: is encrypted, expected an unencrypted private key, because the broker has no passphrase"},
		},
		"two private keys in a file": {
			map[string]string{"k.key": privatePEM(ecKey) + privatePEM(otherKey)},
			[]string{"k.key: has 2 PEM blocks, the second \"PRIVATE KEY\", expected one private key"},
		},
		"a certificate in the file of the private key": {
			map[string]string{"k.key": certificate(ecKey, ecKey, nil) + privatePEM(ecKey)},
			[]string{`k.key: has 2 PEM blocks, the second "PRIVATE KEY", expected one private key`},
		},
		"a private key where the certificate belongs": {
			map[string]string{"k.crt": privatePEM(ecKey)},
			[]string{`k.crt: has a PEM block with the label "PRIVATE KEY", expected certificates only`},
		},
		"the certificate of another key": {
			map[string]string{"k.key": privatePEM(ecKey), "k.crt": certificate(otherKey, otherKey, nil)},
			[]string{"k.crt: has a certificate that does not belong to the key beside it"},
		},
		"the public key of another key": {
			map[string]string{"k.key": privatePEM(ecKey), "k.pub": publicPEM(otherKey)},
			[]string{"k.pub: has a public key that does not belong to the private key beside it"},
		},
		"certificates that did not issue one another": {
			map[string]string{"k.crt": certificate(ecKey, ecKey, nil) + certificate(otherKey, otherKey, other)},
			[]string{"k.crt: has certificates out of order: number 2 did not issue number 1 (x509: ECDSA verification failure); expected the certificate of the key first, and each followed by its issuer"},
		},
		"an expired certificate, which the key is used with nevertheless": {
			map[string]string{"k.crt": certificate(ecKey, ecKey, func(c *x509.Certificate) {
				c.NotBefore, c.NotAfter = time.Unix(0, 0), time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
			})},
			[]string{"k.crt: has a certificate that expired at 2026-01-31T00:00:00Z"},
		},
		"a key pair and an AES key of one name": {
			map[string]string{"k.key": privatePEM(ecKey), "k.bin": strings.Repeat(content, 5)[:32]},
			[]string{"k.bin: exists as well as k.key, k.bin for the same key, expected either an AES key or a key pair"},
		},
		"a file and a Secret of one name": {
			map[string]string{"k.key": privatePEM(ecKey), "k/tls.key": privatePEM(ecKey)},
			[]string{"k.key: exists as well as k/tls.key for the same key, expected only one of them"},
		},
		"a Secret of another kind": {
			map[string]string{"k/password": content},
			[]string{
				"k: holds no file of a key, expected tls.key, tls.crt or names of keys with .key, .crt, .pub or .bin",
				"k/password: is ignored, expected tls.key, tls.crt or the name of a key with .key, .crt, .pub or .bin",
			},
		},
		"a key that two Secrets have": {
			map[string]string{"a/k.bin": strings.Repeat(content, 5)[:32], "b/k.bin": strings.Repeat(content, 5)[1:33]},
			[]string{"b/k.bin: exists as well as a/k.bin for the same key, expected only one of them"},
		},
		"a name in a Secret that is no id": {
			map[string]string{"k/my key.bin": strings.Repeat(content, 5)[:32]},
			[]string{"k/my key.bin: is ignored: the id of a key has letters, digits, dots, hyphens and underscores only"},
		},
		"a Secret of type kubernetes.io/tls whose name is too long": {
			map[string]string{strings.Repeat("k", 65) + "/tls.crt": certificate(ecKey, ecKey, nil)},
			[]string{strings.Repeat("k", 65) + "/tls.crt: is ignored: as the id of a key it has 65 bytes, expected at most 64"},
		},
		"a file of another kind": {
			map[string]string{"k.p12": content},
			[]string{"k.p12: is ignored, expected the name of a key with .key, .crt, .pub or .bin"},
		},
		"a name that is no id": {
			map[string]string{"my key.bin": strings.Repeat(content, 5)[:32]},
			[]string{"my key.bin: is ignored: the id of a key has letters, digits, dots, hyphens and underscores only"},
		},
		"a name that is too long": {
			map[string]string{strings.Repeat("k", 65) + ".bin": strings.Repeat(content, 5)[:32]},
			[]string{strings.Repeat("k", 65) + ".bin: is ignored: as the id of a key it has 65 bytes, expected at most 64"},
		},
		"a file that is too large": {
			map[string]string{"k.key": strings.Repeat("s", keys.MaxFileSize+1)},
			[]string{"k.key: has 65537 bytes, expected at most 65536"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "good.key"), privatePEM(edKey))
			for name, text := range c.files {
				write(t, filepath.Join(dir, name), text)
			}
			d := watch(t, dir)
			var got []string
			for _, problem := range d.next().Problems {
				got = append(got, problem.String())
				if strings.Contains(problem.String(), content) {
					t.Errorf("the problem tells the content of a file: %s", problem)
				}
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			d.has("good", edKey.Public())
		})
	}
}

func TestABadKeyIsKnownButCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "bad.key"), "rubbish")
	d := watch(t, dir)
	if e := d.next(); e.Keys != 0 || e.Unusable != 1 {
		t.Errorf("%+v, want one key that cannot be used", e)
	}
	if _, err := d.Key(t.Context(), keys.Name{ID: "bad"}); !errors.Is(err, keys.ErrUnusable) {
		t.Errorf("%v, want ErrUnusable", err)
	}
}

func TestAnIDIsNeverPartOfAPath(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "outside.key"), privatePEM(edKey))
	write(t, filepath.Join(root, "keys", "inside.key"), privatePEM(edKey))
	d := watch(t, filepath.Join(root, "keys"))
	d.next()
	for _, id := range []string{
		"", ".", "..", "../outside", "../outside.key", "inside.key", "inside/", "./inside", "inside/../inside", "/etc/passwd",
		"..data", "inside\x00", "inside\n", "%2e%2e/outside", `..\outside`, "INSIDE", strings.Repeat("a", 1<<20), "\xff\xfe",
	} {
		if _, err := d.Key(t.Context(), keys.Name{ID: id}); !errors.Is(err, keys.ErrNotFound) {
			t.Errorf("id %.40q: %v, want ErrNotFound", id, err)
		}
	}
	d.has("inside", edKey.Public())
}

func TestAVolumeOfSecretsIsFollowedThroughManyReplacements(t *testing.T) {
	dir := t.TempDir()
	content := func(key any, more map[string]string) map[string]string {
		files := map[string]string{"app.key": privatePEM(key)}
		for name, text := range more {
			files[name] = text
		}
		return files
	}
	project(t, dir, content(ecKey, nil))
	d := watch(t, dir)
	if e := d.next(); e.Keys != 1 || len(e.Problems) != 0 {
		t.Fatalf("%+v, want one key and nothing wrong: a kubelet's files are readable by all who see the volume", e)
	}
	d.has("app", ecKey.Public())
	for range 5 {
		project(t, dir, content(otherKey, map[string]string{"tls/tls.key": privatePEM(ecKey), "tls/tls.crt": certificate(ecKey, ecKey, nil)}))
		d.until("there are two keys", func(e keys.Event) bool { return e.Keys == 2 && len(e.Problems) == 0 })
		d.has("app", otherKey.Public())
		d.has("tls", ecKey.Public())
		project(t, dir, content(edKey, nil))
		d.until("there is one key", func(e keys.Event) bool { return e.Keys == 1 && len(e.Problems) == 0 })
		d.has("app", edKey.Public())
		if _, err := d.Key(t.Context(), keys.Name{ID: "tls"}); !errors.Is(err, keys.ErrNotFound) {
			t.Errorf("a key that was taken away: %v, want ErrNotFound", err)
		}
	}
}

func TestASecretMountedInASubdirectoryIsFollowed(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "issuer")
	project(t, inside, map[string]string{"tls.key": privatePEM(ecKey), "tls.crt": certificate(ecKey, ecKey, nil)})
	d := watch(t, dir)
	d.next()
	d.has("issuer", ecKey.Public())
	project(t, inside, map[string]string{"tls.key": privatePEM(otherKey), "tls.crt": certificate(otherKey, otherKey, nil)})
	if e := d.next(); len(e.Problems) != 0 {
		t.Errorf("%v: key and certificate were taken from two versions", e.Problems)
	}
	d.has("issuer", otherKey.Public())
}

func TestABadVersionOfAKeyLeavesTheGoodOneInUse(t *testing.T) {
	d := watch(t, t.TempDir())
	d.next()
	d.write("app.key", privatePEM(ecKey))
	d.next()
	d.write("other.key", privatePEM(edKey))
	d.next()
	d.write("app.key", "rubbish")
	if e := d.next(); e.Keys != 2 || len(e.Problems) != 1 {
		t.Errorf("%+v, want both keys in use and one problem", e)
	}
	d.has("app", ecKey.Public())
	d.write("app.key", privatePEM(otherKey))
	if e := d.next(); len(e.Problems) != 0 {
		t.Errorf("%+v after it was put right", e)
	}
	d.has("app", otherKey.Public())
}

func TestAKeyThatDidNotChangeIsTheSameKey(t *testing.T) {
	d := watch(t, t.TempDir())
	d.next()
	d.write("aes.bin", strings.Repeat("k", 32))
	d.next()
	before, err := d.Key(t.Context(), keys.Name{ID: "aes"})
	if err != nil {
		t.Fatal(err)
	}
	d.write("more.key", privatePEM(edKey))
	d.next()
	if after, err := d.Key(t.Context(), keys.Name{ID: "aes"}); err != nil || after != before {
		t.Errorf("the key was made anew (%v), so that what it counts began anew", err)
	}
}

func TestADirectoryThatVanishesLeavesItsKeysInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	d := watch(t, dir)
	if e := d.next(); e.Err == nil {
		t.Error("nothing was said about a directory that is missing")
	}
	if _, err := d.Key(t.Context(), keys.Name{ID: "app"}); !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	d.write("app.key", privatePEM(ecKey))
	d.until("the key is in use", func(e keys.Event) bool { return e.Keys == 1 })
	d.has("app", ecKey.Public())
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	d.until("the end of the directory is told", func(e keys.Event) bool { return e.Err != nil && e.Keys == 1 })
	d.has("app", ecKey.Public())
}

func TestFilesThatOthersMayReadOrChangeAreWarnedOf(t *testing.T) {
	for name, c := range map[string]struct {
		mode os.FileMode
		want string
	}{
		"its owner's alone":       {0o600, ""},
		"readable by its group":   {0o640, ""},
		"readable by everybody":   {0o644, "app.key: is a secret that every user may read (mode 0644), expected 0600 or 0640"},
		"changeable by its group": {0o660, "app.key: is a secret that other users than its owner may change (mode 0660), expected 0600 or 0640"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "app.key"), privatePEM(ecKey))
			if err := os.Chmod(filepath.Join(dir, "app.key"), c.mode); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "public.pub"), publicPEM(ecKey))
			if err := os.Chmod(filepath.Join(dir, "public.pub"), 0o666); err != nil {
				t.Fatal(err)
			}
			d := watch(t, dir)
			got := ""
			for _, problem := range d.next().Problems {
				if !problem.Warning {
					t.Errorf("%s is no warning", problem)
				}
				got += problem.String()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			d.has("app", ecKey.Public())
		})
	}
}

func TestAPipeIsRefusedRatherThanWaitedFor(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "app.key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := watch(t, dir).next(); len(e.Problems) != 1 || e.Problems[0].Message != "is not a regular file" {
		t.Errorf("%+v", e)
	}
}

func TestADirectoryHoldsOnlySoManyKeys(t *testing.T) {
	dir := t.TempDir()
	for i := range keys.MaxKeys + 1 {
		write(t, filepath.Join(dir, fmt.Sprintf("k%05d.bin", i)), strings.Repeat("k", 16))
	}
	d := watch(t, dir)
	if e := d.next(); e.Keys != keys.MaxKeys || len(e.Problems) != 1 {
		t.Errorf("%d keys, %v", e.Keys, e.Problems)
	}
}

func TestTheDirectoryIsGivenByItsAbsolutePath(t *testing.T) {
	if _, err := keys.Watch(t.Context(), "keys"); err == nil || err.Error() != `key directory "keys": expected an absolute path` {
		t.Error(err)
	}
}

func TestTheCertificateOfAKeyFollowsItsIssuers(t *testing.T) {
	root := certificate(otherKey, otherKey, func(c *x509.Certificate) { c.SerialNumber = big.NewInt(7) })
	leaf := certificate(ecKey, otherKey, func(c *x509.Certificate) { c.SerialNumber = big.NewInt(8) })
	d := watch(t, t.TempDir())
	d.next()
	d.write("app.crt", leaf+root)
	d.next()
	key, err := d.Key(t.Context(), keys.Name{ID: "app"})
	if err != nil {
		t.Fatal(err)
	}
	chain := key.Certificates()
	if len(chain) != 2 || chain[0].SerialNumber.Int64() != 8 || chain[1].SerialNumber.Int64() != 7 {
		t.Errorf("%d certificates, want the certificate of the key and the certificate of its issuer", len(chain))
	}
}

func TestAKeyHasOnlySoManyCertificates(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "app.crt"), strings.Repeat(certificate(ecKey, ecKey, nil), 11))
	if e := watch(t, dir).next(); len(e.Problems) != 1 || e.Problems[0].String() != "app.crt: has more than 10 certificates" {
		t.Errorf("%v", e.Problems)
	}
}
