// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"unsafe"
)

// status is how a step of an SSL object ended if it did not fail.
type status int

const (
	stepDone   status = iota
	stepLast          // like stepDone, but the next read needs more ciphertext of the peer
	stepHungry        // more ciphertext of the peer is needed
	stepEnded         // the peer sent close_notify
)

// ssl is an SSL object with two BIOs in memory: one for bytes from the peer, and one for bytes to the peer. The
// mutex guards all of it. No step waits for anything.
type ssl struct {
	lib *library

	mutex           sync.Mutex
	address         uintptr // 0 after free
	input, output   uintptr // the BIOs, which belong to the SSL object
	handshakeIsDone bool
	failed          bool   // only free is allowed after a failure
	unsent          bool   // output may have ciphertext to send
	protocols       []byte // the protocols that were offered; never changed
}

func newSSL(context *sslContext, serverName string, protocols []byte, resume *session) (*ssl, error) {
	lib := context.lib
	unlock := lib.lockErrors()
	defer unlock()
	address := call(lib.sslNew, context.address)
	if address == 0 {
		return nil, lib.failure("make a connection")
	}
	live.connections.Add(1)
	s := &ssl{lib: lib, address: address, protocols: protocols}
	method := call(lib.bioMemory)
	s.input, s.output = call(lib.bioNew, method), call(lib.bioNew, method)
	if s.input == 0 || s.output == 0 {
		// The address of a BIO that was not made is 0, which SSL_set_bio accepts.
		call(lib.sslSetBIO, address, s.input, s.output)
		s.free()
		return nil, lib.failure("make the buffers of a connection")
	}
	call(lib.sslSetBIO, address, s.input, s.output)
	call(lib.sslSetConnectState, address)
	if err := s.setServerName(serverName); err != nil {
		s.free()
		return nil, err
	}
	// This function returns 0 if it succeeded.
	if len(protocols) > 0 && int32(call(lib.sslSetALPN, address, uintptr(start(protocols)), uintptr(len(protocols)))) != 0 {
		s.free()
		return nil, lib.failure("set NextProtos")
	}
	if resume != nil && int32(call(lib.sslSetSession, address, resume.address)) != 1 {
		s.free()
		return nil, lib.failure("resume a session")
	}
	return s, nil
}

// setServerName sets what the certificate of the peer has to have, and the name that is sent to it.
func (s *ssl) setServerName(name string) error {
	text := cString(name)
	if _, err := netip.ParseAddr(name); err == nil {
		if int32(call(s.lib.paramSetIP, call(s.lib.sslGetParam, s.address), uintptr(start(text)))) != 1 {
			return s.lib.failure("set ServerName")
		}
		return nil
	}
	call(s.lib.sslSetHostFlags, s.address, hostNeverSubject|hostNoPartialWild)
	if int32(call(s.lib.sslSetHost, s.address, uintptr(start(text)))) != 1 ||
		call(s.lib.sslControl, s.address, ctrlServerName, 0, uintptr(start(text))) != 1 {
		return s.lib.failure("set ServerName")
	}
	return nil
}

// free frees the object. Later steps return net.ErrClosed.
func (s *ssl) free() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.address == 0 {
		return
	}
	call(s.lib.sslFree, s.address)
	s.address, s.input, s.output = 0, 0, 0
	live.connections.Add(-1)
}

// step does one step with the object, which has to return what the function in C returned.
func (s *ssl) step(operation string, function uintptr, buffer []byte) (n int, ended status, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.address == 0 {
		return 0, 0, net.ErrClosed
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	call(s.lib.clearErrors)
	result := int32(call(function, s.address, uintptr(start(buffer)), uintptr(len(buffer))))
	reading := function == s.lib.sslRead
	// This check is cheaper than a read that finds nothing.
	if reading && result > 0 && (call(s.lib.bioPending, s.input) > 0 || int32(call(s.lib.sslHasPending, s.address)) == 1) {
		return int(result), stepDone, nil
	}
	s.unsent = s.unsent || !reading || call(s.lib.bioPending, s.output) > 0
	if result > 0 {
		if reading {
			return int(result), stepLast, nil
		}
		return int(result), stepDone, nil
	}
	switch call(s.lib.sslGetError, s.address, uintptr(result)) {
	case resultWantRead:
		return 0, stepHungry, nil
	case resultZeroReturn:
		return 0, stepEnded, nil
	default:
		s.failed = true
		return 0, 0, s.failure(operation)
	}
}

// failure returns what failed, with the reason why the certificate was refused if that is the cause.
func (s *ssl) failure(operation string) error {
	failed := s.lib.failure(operation)
	if s.handshakeIsDone {
		return failed
	}
	if code := int(int32(call(s.lib.sslVerifyResult, s.address))); code != 0 {
		failed.Certificate = &CertificateError{Code: code, Reason: goString(call(s.lib.verifyErrorText, uintptr(code)))}
	}
	return failed
}

func (s *ssl) handshake(operation string) (status, error) {
	_, ended, err := s.step(operation, s.lib.sslDoHandshake, nil)
	if err == nil && ended == stepEnded {
		err = errors.New("openssl: " + operation + ": the peer closed the connection")
	}
	return ended, err
}

func (s *ssl) read(buffer []byte) (int, status, error) { return s.step("read", s.lib.sslRead, buffer) }

func (s *ssl) write(buffer []byte) (int, status, error) {
	return s.step("write", s.lib.sslWrite, buffer)
}

// shutdown makes a close_notify for the peer.
func (s *ssl) shutdown() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.address == 0 || !s.handshakeIsDone || s.failed {
		return
	}
	unlock := s.lib.lockErrors()
	defer unlock()
	call(s.lib.sslShutdown, s.address)
	call(s.lib.clearErrors)
	s.unsent = true
}

// feed gives ciphertext of the peer to the object.
func (s *ssl) feed(ciphertext []byte) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.address == 0 {
		return net.ErrClosed
	}
	// A BIO in memory takes all bytes, or fails because memory is exhausted.
	if n := int32(call(s.lib.bioWrite, s.input, uintptr(start(ciphertext)), uintptr(len(ciphertext)))); int(n) != len(ciphertext) {
		return errors.New("openssl: found no memory for what the peer sent")
	}
	return nil
}

// drain moves ciphertext for the peer into the buffer, and returns how much.
func (s *ssl) drain(buffer []byte) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.address == 0 {
		return 0
	}
	// A BIO in memory returns a negative number if it is empty.
	n := max(0, int(int32(call(s.lib.bioRead, s.output, uintptr(start(buffer)), uintptr(len(buffer))))))
	s.unsent = n == len(buffer)
	return n
}

// hasOutput reports whether there may be ciphertext for the peer.
func (s *ssl) hasOutput() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.unsent && s.address != 0
}

// outputSize returns how much ciphertext there is for the peer.
func (s *ssl) outputSize() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.address == 0 {
		return 0
	}
	return int(call(s.lib.bioPending, s.output))
}

// state returns what the handshake agreed on.
func (s *ssl) state(serverName string) (tls.ConnectionState, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.address == 0 {
		return tls.ConnectionState{}, net.ErrClosed
	}
	state := tls.ConnectionState{
		HandshakeComplete: true, ServerName: serverName, Version: uint16(call(s.lib.sslVersion, s.address)),
		CipherSuite:                uint16(call(s.lib.cipherID, call(s.lib.sslCipher, s.address))),
		DidResume:                  int32(call(s.lib.sslSessionReused, s.address)) == 1,
		NegotiatedProtocolIsMutual: true, //nolint:staticcheck // crypto/tls sets it, and callers may look
	}
	protocol, length := new(uintptr), new(uint32)
	call(s.lib.sslGetALPN, s.address, uintptr(unsafe.Pointer(protocol)), uintptr(unsafe.Pointer(length)))
	if *protocol != 0 {
		state.NegotiatedProtocol = string(unsafe.Slice((*byte)(pointer(*protocol)), *length))
		// Not all versions of OpenSSL refuse it.
		if !offers(s.protocols, state.NegotiatedProtocol) {
			return tls.ConnectionState{}, fmt.Errorf("openssl: handshake with %s: the server chose the protocol %q, which was not offered", serverName, state.NegotiatedProtocol)
		}
	}
	var err error
	if state.PeerCertificates, err = s.certificates(call(s.lib.sslPeerChain, s.address)); err != nil {
		return tls.ConnectionState{}, err
	}
	chain, err := s.certificates(call(s.lib.sslVerifiedChain, s.address))
	if err != nil {
		return tls.ConnectionState{}, err
	}
	if len(chain) > 0 {
		state.VerifiedChains = [][]*x509.Certificate{chain}
	}
	s.handshakeIsDone = true
	return state, nil
}

// certificates returns the certificates of a STACK_OF(X509), which may be missing.
func (s *ssl) certificates(stack uintptr) ([]*x509.Certificate, error) {
	if stack == 0 {
		return nil, nil
	}
	var list []*x509.Certificate
	for i := range int(int32(call(s.lib.stackLength, stack))) {
		object := call(s.lib.stackValue, stack, uintptr(i))
		der := make([]byte, max(0, int32(call(s.lib.certificateToDER, object, 0))))
		target := new(unsafe.Pointer)
		*target = start(der)
		call(s.lib.certificateToDER, object, uintptr(unsafe.Pointer(target)))
		runtime.KeepAlive(der)
		certificate, err := inUse.parse(der)
		if err != nil {
			return nil, fmt.Errorf("openssl: parse a certificate of the peer: %w", err)
		}
		list = append(list, certificate)
	}
	return list, nil
}
