// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// sServer is OpenSSL's own server, which sends what it reads from its standard input, and writes what
// it receives to its standard output.
type sServer struct {
	address string
	input   io.Writer
	output  *bufio.Reader
}

// startSServer starts it. {certificate}, {key} and {authority} in the arguments stand for files.
func startSServer(t *testing.T, authority *authority, arguments ...string) *sServer {
	t.Helper()
	folder := t.TempDir()
	certificate := authority.issue(t, nil)
	for name, content := range map[string][]byte{"certificate": certificate.certificate, "key": certificate.key, "authority": authority.pem} {
		file := filepath.Join(folder, name+".pem")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		for i := range arguments {
			arguments[i] = strings.ReplaceAll(arguments[i], "{"+name+"}", file)
		}
	}
	command := exec.CommandContext(t.Context(), "openssl", append([]string{"s_server", "-accept", "127.0.0.1:0",
		"-cert", filepath.Join(folder, "certificate.pem"), "-key", filepath.Join(folder, "key.pem")}, arguments...)...)
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = writer, writer
	err = command.Start()
	_ = writer.Close()
	if err != nil {
		_ = output.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = output.Close()
	})
	_ = output.SetReadDeadline(time.Now().Add(patience))
	server := &sServer{input: input, output: bufio.NewReader(output)}
	server.address = server.wait(t, "ACCEPT ")
	return server
}

// wait returns what follows the text in the next line that has it.
func (s *sServer) wait(t *testing.T, text string) string {
	t.Helper()
	var lines strings.Builder
	for {
		line, err := s.output.ReadString('\n')
		lines.WriteString(line)
		if _, rest, ok := strings.Cut(strings.TrimSpace(line), text); ok {
			return rest
		}
		if err != nil {
			t.Fatalf("the server did not write %q: %v\n%s", text, err, lines.String())
		}
	}
}

func (s *sServer) command(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(s.input, line); err != nil {
		t.Fatal(err)
	}
}

// expect reads the text from a connection.
func expect(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("read %q: %v, expected %q", got, err, text)
	}
}

func TestKeysAreChangedWhileTheConnectionIsUsed(t *testing.T) {
	authority := newAuthority(t)
	// K updates the keys of the server and asks for new keys of the client, k updates the keys of the server.
	for _, letter := range []string{"k", "K"} {
		t.Run(letter, func(t *testing.T) {
			withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
				server := startSServer(t, authority, "-tls1_3", "-msg")
				conn := p.dial(t, server.address, "localhost")
				if err := conn.HandshakeContext(t.Context()); err != nil {
					t.Fatal(err)
				}
				for i := range 3 {
					server.command(t, letter)
					// The server looks for a command at the beginning of what it reads only.
					server.wait(t, "KeyUpdate")
					message := fmt.Sprintf("message %d of the server\n", i)
					server.command(t, strings.TrimSuffix(message, "\n"))
					expect(t, conn, message)
					if _, err := fmt.Fprintf(conn, "message %d of the client\n", i); err != nil {
						t.Fatal(err)
					}
					server.wait(t, fmt.Sprintf("message %d of the client", i))
				}
			})
		})
	}
}

func TestARenegotiationIsRefused(t *testing.T) {
	authority := newAuthority(t)
	withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
		server := startSServer(t, authority, "-tls1_2", "-msg")
		conn := p.dial(t, server.address, "localhost")
		if err := conn.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := conn.Read(make([]byte, 1))
			ended <- err
		}()
		server.command(t, "R")
		server.wait(t, "HelloRequest")
		// The server ends the connection after the refusal.
		server.wait(t, "no_renegotiation")
		if err := <-ended; err == nil {
			t.Error("a read succeeded, and the server sent nothing")
		}
	})
}
