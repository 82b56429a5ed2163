// SPDX-License-Identifier: Apache-2.0

// Package softhsm makes tokens of SoftHSM for tests, and keys in them. SoftHSM is a library for PKCS #11 that keeps its
// tokens in files.
package softhsm

import (
	"context"
	"encoding/asn1"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/miekg/pkcs11"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// PIN is the PIN of the user of each token.
const PIN = "12345678"

// Library is the path of the library. Run sets it.
var Library string

// device is the library in this process.
var device *pkcs11.Ctx

// Run runs the tests of a package, whose tokens are in a folder of their own. A process has one such folder.
func Run(m *testing.M) (code int) {
	folder, err := start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "SoftHSM cannot be used:", err)
		return 1
	}
	defer os.RemoveAll(folder)
	return m.Run()
}

// Start is Run for one test, whose own process uses the library through this package alone. Processes that the test
// starts have the tokens, too.
func Start(t *testing.T) {
	t.Helper()
	folder, err := start()
	t.Cleanup(func() {
		if device != nil {
			must(t, device.Finalize())
			device.Destroy()
			device = nil
		}
		must(t, errors.Join(os.RemoveAll(folder), os.Unsetenv("SOFTHSM2_CONF")))
	})
	if err != nil {
		t.Fatal("SoftHSM cannot be used: ", err)
	}
}

func start() (folder string, err error) {
	repository, err := environment.Repository()
	if err != nil {
		return "", err
	}
	cache, err := environment.Cache(repository)
	if err != nil {
		return "", err
	}
	files, err := environment.DebianPackage(context.Background(), os.Stderr, cache, "libsofthsm2")
	if err != nil {
		return "", err
	}
	Library = filepath.Join(files, "usr", "lib", "softhsm", "libsofthsm2.so")
	if folder, err = os.MkdirTemp("", "softhsm-"); err != nil {
		return "", err
	}
	configuration := filepath.Join(folder, "softhsm2.conf")
	tokens := filepath.Join(folder, "tokens")
	if err := errors.Join(os.Mkdir(tokens, 0o700), os.Setenv("SOFTHSM2_CONF", configuration),
		os.WriteFile(configuration, []byte("directories.tokendir = "+tokens+"\nobjectstore.backend = file\nlog.level = ERROR\n"), 0o600)); err != nil {
		return folder, err
	}
	if device = pkcs11.New(Library); device == nil {
		return folder, fmt.Errorf("%s cannot be loaded", Library)
	}
	return folder, device.Initialize()
}

// Token is a token of SoftHSM, made by [NewToken].
type Token struct {
	Label string
	slot  uint
}

// made counts tokens, so that a test that runs twice gets two different tokens.
var made atomic.Int64

// NewToken makes a token. Its label begins with the name.
func NewToken(t testing.TB, name string) *Token {
	t.Helper()
	label := fmt.Sprintf("%s-%d", name, made.Add(1))
	slots, err := device.GetSlotList(true)
	if err != nil {
		t.Fatal(err)
	}
	free := slots[len(slots)-1] // the library has one more slot than tokens
	must(t, device.InitToken(free, "so-"+PIN, label))
	if slots, err = device.GetSlotList(true); err != nil {
		t.Fatal(err)
	}
	for _, slot := range slots {
		if info, err := device.GetTokenInfo(slot); err == nil && info.Label == label {
			session, err := device.OpenSession(slot, pkcs11.CKF_SERIAL_SESSION|pkcs11.CKF_RW_SESSION)
			must(t, err)
			must(t, device.Login(session, pkcs11.CKU_SO, "so-"+PIN))
			must(t, device.InitPIN(session, PIN))
			must(t, device.Logout(session))
			must(t, device.CloseSession(session))
			return &Token{label, slot}
		}
	}
	t.Fatalf("the library has no token %q after it was made", label)
	return nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// do runs calls on a session of the user. Afterwards the user is logged in only if the user was logged in before.
func (k *Token) do(t testing.TB, calls func(pkcs11.SessionHandle) error) {
	t.Helper()
	session, err := device.OpenSession(k.slot, pkcs11.CKF_SERIAL_SESSION|pkcs11.CKF_RW_SESSION)
	must(t, err)
	login := device.Login(session, pkcs11.CKU_USER, PIN)
	if login != nil && !errors.Is(login, pkcs11.Error(pkcs11.CKR_USER_ALREADY_LOGGED_IN)) {
		t.Fatal(login)
	}
	err = calls(session)
	if login == nil {
		must(t, device.Logout(session))
	}
	must(t, device.CloseSession(session))
	must(t, err)
}

func named(label string, id byte, more ...*pkcs11.Attribute) []*pkcs11.Attribute {
	return append(more, pkcs11.NewAttribute(pkcs11.CKA_LABEL, label), pkcs11.NewAttribute(pkcs11.CKA_ID, []byte{id}), pkcs11.NewAttribute(pkcs11.CKA_TOKEN, true))
}

func private(label string, id byte, more ...*pkcs11.Attribute) []*pkcs11.Attribute {
	return named(label, id, append(more, pkcs11.NewAttribute(pkcs11.CKA_PRIVATE, true), pkcs11.NewAttribute(pkcs11.CKA_SENSITIVE, true),
		pkcs11.NewAttribute(pkcs11.CKA_EXTRACTABLE, false))...)
}

// ImportAES puts an AES key into the token, which does not give it out again.
func (k *Token) ImportAES(t testing.TB, label string, id byte, material []byte) {
	t.Helper()
	k.do(t, func(session pkcs11.SessionHandle) error {
		_, err := device.CreateObject(session, private(label, id,
			pkcs11.NewAttribute(pkcs11.CKA_CLASS, pkcs11.CKO_SECRET_KEY), pkcs11.NewAttribute(pkcs11.CKA_KEY_TYPE, pkcs11.CKK_AES), pkcs11.NewAttribute(pkcs11.CKA_VALUE, material),
			pkcs11.NewAttribute(pkcs11.CKA_ENCRYPT, true), pkcs11.NewAttribute(pkcs11.CKA_DECRYPT, true), pkcs11.NewAttribute(pkcs11.CKA_WRAP, true), pkcs11.NewAttribute(pkcs11.CKA_UNWRAP, true)))
		return err
	})
}

// MakeRSA makes an RSA key pair.
func (k *Token) MakeRSA(t testing.TB, label string, id byte, bits int) {
	t.Helper()
	k.makePair(t, pkcs11.CKM_RSA_PKCS_KEY_PAIR_GEN, label, id,
		pkcs11.NewAttribute(pkcs11.CKA_MODULUS_BITS, bits), pkcs11.NewAttribute(pkcs11.CKA_PUBLIC_EXPONENT, []byte{1, 0, 1}))
}

// MakeEC makes an EC key pair of the curve with an object identifier.
func (k *Token) MakeEC(t testing.TB, label string, id byte, curve asn1.ObjectIdentifier) {
	t.Helper()
	der, err := asn1.Marshal(curve)
	must(t, err)
	k.makePair(t, pkcs11.CKM_EC_KEY_PAIR_GEN, label, id, pkcs11.NewAttribute(pkcs11.CKA_EC_PARAMS, der))
}

// MakeEd25519 makes an Ed25519 key pair.
func (k *Token) MakeEd25519(t testing.TB, label string, id byte) {
	t.Helper()
	const edwardsKeyPairGen = 0x1055 // CKM_EC_EDWARDS_KEY_PAIR_GEN of PKCS #11 3.0
	k.makePair(t, edwardsKeyPairGen, label, id, pkcs11.NewAttribute(pkcs11.CKA_EC_PARAMS, []byte{6, 3, 0x2b, 0x65, 0x70}))
}

func (k *Token) makePair(t testing.TB, mechanism uint, label string, id byte, public ...*pkcs11.Attribute) {
	t.Helper()
	k.do(t, func(session pkcs11.SessionHandle) error {
		_, _, err := device.GenerateKeyPair(session, []*pkcs11.Mechanism{pkcs11.NewMechanism(mechanism, nil)},
			named(label, id, append(public, pkcs11.NewAttribute(pkcs11.CKA_VERIFY, true))...), private(label, id,
				pkcs11.NewAttribute(pkcs11.CKA_SIGN, true), pkcs11.NewAttribute(pkcs11.CKA_DECRYPT, true), pkcs11.NewAttribute(pkcs11.CKA_DERIVE, true)))
		return err
	})
}

// ImportCertificate puts a certificate into the token.
func (k *Token) ImportCertificate(t testing.TB, label string, id byte, subject, der []byte) {
	t.Helper()
	k.do(t, func(session pkcs11.SessionHandle) error {
		_, err := device.CreateObject(session, named(label, id,
			pkcs11.NewAttribute(pkcs11.CKA_CLASS, pkcs11.CKO_CERTIFICATE), pkcs11.NewAttribute(pkcs11.CKA_CERTIFICATE_TYPE, pkcs11.CKC_X_509),
			pkcs11.NewAttribute(pkcs11.CKA_SUBJECT, subject), pkcs11.NewAttribute(pkcs11.CKA_VALUE, der)))
		return err
	})
}

// Destroy destroys the objects with a label and a CKA_ID.
func (k *Token) Destroy(t testing.TB, label string, id byte) {
	t.Helper()
	k.do(t, func(session pkcs11.SessionHandle) error {
		if err := device.FindObjectsInit(session, named(label, id)); err != nil {
			return err
		}
		found, _, err := device.FindObjects(session, 16)
		err = errors.Join(err, device.FindObjectsFinal(session))
		for _, object := range found {
			err = errors.Join(err, device.DestroyObject(session, object))
		}
		return err
	})
}

// EndSessions ends all sessions, like a restart of a device.
func (k *Token) EndSessions(t testing.TB) {
	t.Helper()
	must(t, device.CloseAllSessions(k.slot))
}
