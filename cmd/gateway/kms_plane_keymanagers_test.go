// SPDX-License-Identifier: Apache-2.0

//go:build apiserver && keymanagers

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	kmstypes "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/v2"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

// plane is an API server with a KMS plugin, and its etcd. Both keep their files and ports when the
// API server is stopped and started.
type plane struct {
	*envtest.ControlPlane
	client typedcorev1.CoreV1Interface
}

// startPlane starts an API server with the configuration of docs/kubernetes-kms.md.
func startPlane(t *testing.T, socket string) *plane {
	t.Helper()
	assets, err := apiserver.Assets()
	if err != nil {
		t.Fatal(err)
	}
	const endpoint = "unix:///run/crypto-broker-kms/crypto-broker-server.sock"
	configuration := block(t, "yaml", "# /etc/kubernetes/encryption.yaml\n")
	if !strings.Contains(configuration, endpoint) {
		t.Fatalf("the configuration of the API server in the documentation has no endpoint %s", endpoint)
	}
	file := write(t, filepath.Join(t.TempDir(), "encryption.yaml"), strings.Replace(configuration, endpoint, "unix://"+socket, 1))
	p := &plane{ControlPlane: &envtest.ControlPlane{
		Etcd:      &envtest.Etcd{Path: filepath.Join(assets, "etcd"), DataDir: t.TempDir(), StartTimeout: 3 * time.Minute, StopTimeout: time.Minute},
		APIServer: &envtest.APIServer{Path: filepath.Join(assets, "kube-apiserver"), CertDir: t.TempDir(), StartTimeout: 3 * time.Minute, StopTimeout: time.Minute},
	}}
	if err := apiserver.Reserve(p.ControlPlane); err != nil {
		t.Fatal(err)
	}
	p.APIServer.Configure().Set("encryption-provider-config", file)
	// How long the start waits for resources that cannot be read, such as Secrets without the key
	// manager. The default is a minute.
	p.APIServer.Configure().Set("storage-initialization-timeout", "3s")
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	admin, err := p.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(admin.Config())
	if err != nil {
		t.Fatal(err)
	}
	p.client = clients.CoreV1()
	return p
}

// get returns the API server's reply at a path.
func (p *plane) get(t *testing.T, path string) (string, error) {
	t.Helper()
	path, query, _ := strings.Cut(path, "?")
	request := p.client.RESTClient().Get().AbsPath(path)
	if query != "" {
		request = request.Param(query, "")
	}
	body, err := request.DoRaw(t.Context())
	return string(body), err
}

// stored returns the value of a Secret in etcd. The plugin must have encrypted it.
func (p *plane) stored(t *testing.T, name string) *kmstypes.EncryptedObject {
	t.Helper()
	// The API of etcd by HTTP has keys and values in base64, as JSON has bytes in Go.
	question, err := json.Marshal(map[string][]byte{"key": []byte("/registry/secrets/default/" + name)})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.Etcd.URL.String()+"/v3/kv/range", bytes.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Kvs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || len(answer.Kvs) != 1 {
		t.Fatalf("etcd has %d values of the Secret %s, %v", len(answer.Kvs), name, err)
	}
	value := answer.Kvs[0].Value
	if bytes.Contains(value, []byte(password)) {
		t.Errorf("etcd has the Secret %s in the clear", name)
	}
	encrypted, found := bytes.CutPrefix(value, []byte("k8s:enc:kms:v2:crypto-broker:"))
	if !found {
		t.Fatalf("the Secret %s in etcd begins with %.40q", name, value)
	}
	object := &kmstypes.EncryptedObject{}
	if err := proto.Unmarshal(encrypted, object); err != nil {
		t.Fatal(err)
	}
	return object
}

// link is the network between the plugin and its key manager. While it is cut, it closes each
// connection at once.
type link struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, to: to, open: map[net.Conn]bool{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { l.serve(from) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.cut(true)
		serving.Wait()
	})
	return l
}

func (l *link) address() string { return l.listener.Addr().String() }

// cut closes all connections, or lets new ones through.
func (l *link) cut(isCut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = isCut
	if isCut {
		for connection := range l.open {
			_ = connection.Close()
		}
	}
}

// accept reports whether a connection may stay, and then closes it when the link is cut.
func (l *link) accept(connection net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		_ = connection.Close()
		return false
	}
	l.open[connection] = true
	return true
}

func (l *link) serve(from net.Conn) {
	defer l.forget(from)
	if !l.accept(from) {
		return
	}
	to, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer l.forget(to)
	if !l.accept(to) {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // copying ends with the connections
			_ = way[0].Close()
		})
	}
	both.Wait()
}

func (l *link) forget(connection net.Conn) {
	_ = connection.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, connection)
}
