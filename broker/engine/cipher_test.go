// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// cipherPolicy compiles the policy of a profile whose EncryptData has these
// lines and EncryptAlg.
func cipherPolicy(t testing.TB, lines ...string) *profile.CipherPolicy {
	t.Helper()
	text := "- Name: P\n  API:\n    EncryptData:\n      EncryptAlg: aes-gcm\n"
	for _, line := range lines {
		text += "      " + line + "\n"
	}
	set, problems := profile.Compile(profile.FileName, []byte(text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	p, _ := set.Lookup("P")
	return p.Cipher()
}

func aesKey(t testing.TB, key []byte) *engine.AESGCM {
	t.Helper()
	cipher, err := engine.NewAESGCM(key)
	if err != nil {
		t.Fatal(err)
	}
	return cipher
}

// The test cases 4, 10 and 16 of McGrew and Viega, "The Galois/Counter Mode of
// Operation (GCM)", the submission to NIST, appendix B.
const (
	gcmKey   = "feffe9928665731c6d6a8f9467308308 feffe9928665731c6d6a8f9467308308"
	gcmNonce = "cafebabefacedbaddecaf888"
	gcmPlain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
	gcmAAD   = "feedfacedeadbeeffeedfacedeadbeefabaddad2"
)

var gcmAnswers = map[int]struct{ ciphertext, tag string }{
	128: {
		"42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
		"5bc94fbc3221a5db94fae95ae7121a47",
	},
	192: {
		"3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710",
		"2519498e80f1478f37ba55bd6d27618c",
	},
	256: {
		"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
		"76fc6ece0f4e1768cddf8853bb2d551b",
	},
}

func TestEncryptionHasThePublishedResults(t *testing.T) {
	for size, want := range gcmAnswers {
		for line, tagLength := range map[string]int{
			"TagLength: 96": 128, "TagLength: 112": 128, "TagLength: 128": 128, // as in released brokers
			"ShortTagLength: 96": 96, "ShortTagLength: 104": 104, "ShortTagLength: 112": 112, "ShortTagLength: 120": 120,
		} {
			t.Run(fmt.Sprintf("AES-%d with %s", size, line), func(t *testing.T) {
				policy := cipherPolicy(t, fmt.Sprintf("KeySize: %d", size), line)
				key := aesKey(t, unhex(t, gcmKey)[:size/8])
				sealed, err := engine.Encrypt(policy, key, unhex(t, gcmNonce), unhex(t, gcmPlain), unhex(t, gcmAAD))
				if err != nil {
					t.Fatal(err)
				}
				if got := hex.EncodeToString(sealed.Ciphertext); got != want.ciphertext {
					t.Errorf("ciphertext %s, want %s", got, want.ciphertext)
				}
				if got := hex.EncodeToString(sealed.Tag); got != want.tag[:tagLength/4] {
					t.Errorf("tag %s, want %s", got, want.tag[:tagLength/4])
				}
				plain, err := engine.Decrypt(policy, key, sealed, unhex(t, gcmAAD))
				if err != nil || !bytes.Equal(plain, unhex(t, gcmPlain)) {
					t.Errorf("decrypted to %x, %v", plain, err)
				}
			})
		}
	}
}

func TestTheBrokersNonceIsAnotherEachTime(t *testing.T) {
	policy := cipherPolicy(t, "KeySize: 256", "NonceStrategy: random", "ShortTagLength: 96")
	key := aesKey(t, make([]byte, 32))
	seen := map[string]bool{}
	for range 1000 {
		sealed, err := engine.Encrypt(policy, key, nil, []byte("plain"), []byte("aad"))
		if err != nil {
			t.Fatal(err)
		}
		if len(sealed.Nonce) != engine.NonceSize || len(sealed.Tag) != 12 || len(sealed.Ciphertext) != len("plain") {
			t.Fatalf("sizes %d, %d, %d", len(sealed.Nonce), len(sealed.Tag), len(sealed.Ciphertext))
		}
		if seen[string(sealed.Nonce)] {
			t.Fatal("a nonce came twice")
		}
		seen[string(sealed.Nonce)] = true
		plain, err := engine.Decrypt(policy, key, sealed, []byte("aad"))
		if err != nil || string(plain) != "plain" {
			t.Fatalf("decrypted to %q, %v", plain, err)
		}
	}
}

func TestWhatIsNotAuthenticIsRefusedWithoutSayingWhy(t *testing.T) {
	policy := cipherPolicy(t, "KeySize: 128", "ShortTagLength: 96")
	key := aesKey(t, make([]byte, 16))
	nonce := make([]byte, engine.NonceSize)
	good, err := engine.Encrypt(policy, key, nonce, []byte("plain"), []byte("aad"))
	if err != nil {
		t.Fatal(err)
	}
	flipped := func(data []byte) []byte {
		data = bytes.Clone(data)
		data[0] ^= 1
		return data
	}
	type input struct {
		key    engine.Cipher
		sealed engine.Sealed
		aad    string
	}
	for name, change := range map[string]func(*input){
		"another key":        func(i *input) { i.key = aesKey(t, bytes.Repeat([]byte{1}, 16)) },
		"another nonce":      func(i *input) { i.sealed.Nonce = flipped(nonce) },
		"another ciphertext": func(i *input) { i.sealed.Ciphertext = flipped(good.Ciphertext) },
		"no ciphertext":      func(i *input) { i.sealed.Ciphertext = nil },
		"more ciphertext":    func(i *input) { i.sealed.Ciphertext = append(bytes.Clone(good.Ciphertext), 0) },
		"another tag":        func(i *input) { i.sealed.Tag = flipped(good.Tag) },
		"other data":         func(i *input) { i.aad = "AAD" },
		"no data":            func(i *input) { i.aad = "" },
	} {
		t.Run(name, func(t *testing.T) {
			i := input{key, good, "aad"}
			change(&i)
			plain, err := engine.Decrypt(policy, i.key, i.sealed, []byte(i.aad))
			const want = "ciphertext does not authenticate with this key, nonce, aad and tag"
			if plain != nil || err == nil || err.Error() != want {
				t.Errorf("%q, %v, want %s", plain, err, want)
			}
		})
	}
}

func TestInputThatDoesNotFitThePolicyIsRefused(t *testing.T) {
	const size = "KeySize: 256"
	given, random := cipherPolicy(t, size, "NonceStrategy: user-provided"), cipherPolicy(t, size, "NonceStrategy: random")
	key, nonce := aesKey(t, make([]byte, 32)), make([]byte, engine.NonceSize)
	for name, c := range map[string]struct {
		do   func() error
		want string
	}{
		"a key of another size": {func() error {
			_, err := engine.Encrypt(given, aesKey(t, make([]byte, 16)), nonce, nil, nil)
			return err
		}, "keySource is a key of 128 bits, expected one of 256 bits"},
		"no nonce": {func() error {
			_, err := engine.Encrypt(given, key, nil, nil, nil)
			return err
		}, "encryptMetadata.nonce has 0 bytes, expected 12"},
		"a long nonce": {func() error {
			_, err := engine.Encrypt(given, key, make([]byte, 16), nil, nil)
			return err
		}, "encryptMetadata.nonce has 16 bytes, expected 12"},
		"a nonce where the broker makes it": {func() error {
			_, err := engine.Encrypt(random, key, nonce, nil, nil)
			return err
		}, "encryptMetadata.nonce has 12 bytes, expected none: with NonceStrategy random the broker makes the nonce"},
		"no nonce to decrypt with": {func() error {
			_, err := engine.Decrypt(random, key, engine.Sealed{Tag: make([]byte, 16)}, nil)
			return err
		}, "decryptMetadata.nonce has 0 bytes, expected 12"},
		"no tag": {func() error {
			_, err := engine.Decrypt(given, key, engine.Sealed{Nonce: nonce}, nil)
			return err
		}, "decryptMetadata.tag has 0 bytes, expected the 16 that tags of this profile have"},
		"a tag that was cut": {func() error {
			_, err := engine.Decrypt(given, key, engine.Sealed{Nonce: nonce, Tag: make([]byte, 12)}, nil)
			return err
		}, "decryptMetadata.tag has 12 bytes, expected the 16 that tags of this profile have"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.do()
			var input *engine.InputError
			if !errors.As(err, &input) || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestAKeyOfAnotherSizeIsNone(t *testing.T) {
	for _, size := range []int{0, 1, 15, 17, 31, 33, 64} {
		if _, err := engine.NewAESGCM(make([]byte, size)); err == nil ||
			err.Error() != fmt.Sprintf("has %d bytes, expected the 16, 24 or 32 bytes of an AES key", size) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestAKeyIsNotReferredToOnceItsCipherIsMade(t *testing.T) {
	key := bytes.Repeat([]byte{7}, 32)
	cipher := aesKey(t, key)
	clear(key)
	_, first, err := cipher.Seal(make([]byte, engine.NonceSize), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, second, err := aesKey(t, bytes.Repeat([]byte{7}, 32)).Seal(make([]byte, engine.NonceSize), nil, nil); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the cipher changed with the bytes it was made of: %v", err)
	}
}

func FuzzDecryptUndoesEncrypt(f *testing.F) {
	f.Add([]byte("plain"), []byte("aad"), []byte("twelve bytes"), uint8(0), uint8(0))
	f.Add([]byte{}, []byte{}, make([]byte, 12), uint8(2), uint8(4))
	f.Add(bytes.Repeat([]byte{0xff}, 100), []byte{0}, bytes.Repeat([]byte{0xff}, 12), uint8(1), uint8(2))
	f.Fuzz(func(t *testing.T, plain, aad, nonce []byte, size, tag uint8) {
		lines := []string{fmt.Sprintf("KeySize: %d", 128+64*int(size%3))}
		if cut := int(tag % 5); cut > 0 {
			lines = append(lines, fmt.Sprintf("ShortTagLength: %d", 128-8*cut))
		}
		policy := cipherPolicy(t, lines...)
		key := aesKey(t, bytes.Repeat([]byte{9}, policy.KeySize()))
		sealed, err := engine.Encrypt(policy, key, nonce, plain, aad)
		if (err == nil) != (len(nonce) == engine.NonceSize) {
			t.Fatalf("a nonce of %d bytes: %v", len(nonce), err)
		}
		if err != nil {
			return
		}
		got, err := engine.Decrypt(policy, key, sealed, aad)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("decrypted to %x, %v", got, err)
		}
		sealed.Tag[0] ^= 1
		if got, err := engine.Decrypt(policy, key, sealed, aad); err == nil || got != nil {
			t.Fatal("a changed tag was accepted")
		}
	})
}
