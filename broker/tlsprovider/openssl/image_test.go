// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// buildImages builds images of this checkout, and returns the files of their archives.
func buildImages(t *testing.T, names string) map[string][]byte {
	t.Helper()
	out := t.TempDir()
	build := exec.CommandContext(t.Context(), "../../../hack/image/build", "--only", names, "--tag", "v1", "--out", out)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	archives := map[string][]byte{}
	for name := range strings.SplitSeq(names, ",") {
		content, err := os.ReadFile(filepath.Join(out, name+"-v1.tar"))
		if err != nil {
			t.Fatal(err)
		}
		archives[name] = content
	}
	return archives
}

// files calls a function with each file of an archive.
func files(t *testing.T, archive []byte, f func(*tar.Header, []byte)) {
	t.Helper()
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		f(header, content)
	}
}

// container is the root file system of an image, and how it starts its program.
type container struct {
	root    string
	program []string
	env     []string
}

// unpack makes the root file system of an image.
func unpack(t *testing.T, archive []byte) container {
	t.Helper()
	blobs := map[string][]byte{}
	files(t, archive, func(header *tar.Header, content []byte) { blobs[header.Name] = content })
	var manifest []struct {
		Config string
		Layers []string
	}
	var image struct {
		Config struct {
			User            string
			Entrypoint, Env []string
		}
	}
	for _, err := range []error{json.Unmarshal(blobs["manifest.json"], &manifest), json.Unmarshal(blobs[manifest[0].Config], &image)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if image.Config.User != "65532:65532" {
		t.Errorf("the image runs as %s", image.Config.User)
	}
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil { // for the user of the image
		t.Fatal(err)
	}
	for _, layer := range manifest[0].Layers {
		files(t, blobs[layer], func(header *tar.Header, content []byte) {
			path := filepath.Join(root, header.Name)
			err := os.MkdirAll(filepath.Dir(path), 0o755)
			switch {
			case err != nil:
			case header.Typeflag == tar.TypeDir:
				err = errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, header.FileInfo().Mode()&(os.ModePerm|os.ModeSticky)))
			case header.Typeflag == tar.TypeSymlink:
				err = os.Symlink(header.Linkname, path)
			case header.Typeflag == tar.TypeReg:
				err = os.WriteFile(path, content, header.FileInfo().Mode().Perm())
			default:
				err = errors.New("neither folder, link nor file")
			}
			if err != nil {
				t.Fatalf("%s: %v", header.Name, err)
			}
		})
	}
	return container{root, image.Config.Entrypoint, image.Config.Env}
}

// command starts the program in the root file system as the user of the image.
func (c container) command(ctx context.Context, environment []string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, c.program[0], arguments...)
	command.Dir, command.Env = "/", slices.Concat(environment, c.env)
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}, Pdeathsig: syscall.SIGKILL}
	return command
}

// give writes a file that the program can read.
func (c container) give(t *testing.T, path, content string) {
	t.Helper()
	path = filepath.Join(c.root, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestImagesWithOpenSSLRunAndUseTheLibraryInThem(t *testing.T) {
	images := buildImages(t, "broker-openssl,gateway-openssl")
	broker, gateway := unpack(t, images["broker-openssl"]), unpack(t, images["gateway-openssl"])
	fields, err := os.ReadFile(filepath.Join(broker.root, "var/lib/dpkg/status.d/libssl3"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^Version: ([0-9.]+)`).FindSubmatch(fields)
	if version == nil {
		t.Fatalf("found no version in %s", fields)
	}
	module := "OpenSSL " + string(version[1]) + " "

	t.Run("the broker tells which library it is", func(t *testing.T) {
		output, err := broker.command(t.Context(), nil, "fips").CombinedOutput()
		if err != nil || !strings.Contains(string(output), "\nTLS of connections to others: "+module) {
			t.Errorf("%v: %s, expected %s", err, output, module)
		}
	})
	t.Run("the key gateway tells which library it is", func(t *testing.T) {
		gateway.give(t, "/keys", "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
		// Without a cluster it ends after that.
		output, err := gateway.command(t.Context(), []string{"KUBECONFIG=/keys", "POD_NAMESPACE=operator"}, "--tls-provider=openssl", "--certificate-dir=/none", "--trusted-keys-file=/keys").CombinedOutput()
		if err == nil || !strings.Contains(string(output), `"provider":{"provider":"openssl","version":"`+module) {
			t.Errorf("%v: %s, expected %s", err, output, module)
		}
	})
	t.Run("the broker makes a connection with authorities of its own", func(t *testing.T) {
		certified := httptest.NewTLSServer(nil)
		defer certified.Close()
		listener, err := tls.Listen("tcp", "127.0.0.1:0", certified.TLS)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }()
		broker.give(t, "/profiles/Profiles.yaml", "- Name: P\n  API:\n    HashData:\n      HashAlg: sha-256\n")
		broker.give(t, "/redis/Redis.yaml", "Addresses: ["+listener.Addr().String()+"]\nKeysInClear: true\n")
		broker.give(t, "/redis/ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw})))
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		said := &bytes.Buffer{}
		command := broker.command(ctx, nil, "--profiles-dir=/profiles", "--socket-dir=/tmp", "--session-redis-dir=/redis")
		command.Stdout, command.Stderr = said, said
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = command.Wait() // the process was killed, so Wait returns an error
			_ = listener.Close()
			close(ended)
		}()
		conn, err := listener.Accept()
		if err == nil {
			err = conn.(*tls.Conn).HandshakeContext(ctx)
			_ = conn.Close()
		}
		end()
		<-ended
		if err != nil {
			t.Errorf("%v\n%s", err, said)
		}
	})
	t.Run("the image has its program and no other, the licenses, and no authorities", func(t *testing.T) {
		if !slices.Contains(broker.env, "CRYPTO_BROKER_TLS_PROVIDER=openssl") {
			t.Errorf("the environment is %q", broker.env)
		}
		for _, path := range []string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/etc/ssl"} {
			if _, err := os.Stat(filepath.Join(broker.root, path)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the image has %s (%v)", path, err)
			}
		}
		for _, name := range []string{"libc6", "libssl3"} {
			if _, err := os.Stat(filepath.Join(broker.root, "usr/share/doc", name, "copyright")); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("the same source gives the same bytes", func(t *testing.T) {
		if again := buildImages(t, "broker-openssl"); !bytes.Equal(again["broker-openssl"], images["broker-openssl"]) {
			t.Error("a second build differs")
		}
	})
}
