// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigWith writes a kubeconfig with the contexts prod and test, and returns its path.
func kubeconfigWith(t *testing.T, current, server string) string {
	t.Helper()
	file := clientcmdapi.NewConfig()
	for _, name := range []string{"prod", "test"} {
		file.Clusters[name] = &clientcmdapi.Cluster{Server: server}
		file.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	}
	file.CurrentContext = current
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommandsOfThePageStayWithTheContextOfItsStart(t *testing.T) {
	for sentence, test := range map[string]struct {
		current string
		args    []string
		want    string
	}{
		"the current context":             {"test", nil, " --context=test"},
		"a context that is given":         {"test", []string{"--context=prod"}, " --context=prod"},
		"no current context":              {"", nil, ""},
		"a context that there is not":     {"gone", nil, ""},
		"a current context and a cluster": {"test", []string{"--cluster=prod"}, " --cluster=prod --context=test"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Setenv("KUBECONFIG", kubeconfigWith(t, test.current, "https://127.0.0.1:1"))
			c, cmd := &cluster{}, &cobra.Command{}
			c.flags(cmd, false)
			if err := cmd.ParseFlags(test.args); err != nil {
				t.Fatal(err)
			}
			if err := c.pin(cmd.Flags()); err != nil {
				t.Fatal(err)
			}
			if found := connectionFlags(cmd.Flags()); found != test.want {
				t.Errorf("found %q, expected %q", found, test.want)
			}
		})
	}
}

func TestAnAnswerOfAPodEnds(t *testing.T) {
	const long = 3 << 20
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("fails") {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write(bytes.Repeat([]byte("a"), long)) // the client may close the connection
	}))
	defer server.Close()
	t.Setenv("KUBECONFIG", kubeconfigWith(t, "test", server.URL))
	c, cmd := &cluster{}, &cobra.Command{}
	c.flags(cmd, false)
	settings, _, err := c.settings(rest.NoWarnings{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(settings)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"/api/v1/namespaces/shop/pods/http:orders:9470/proxy/profiles":       1<<20 + 1,
		"/api/v1/namespaces/shop/pods/http:orders:9470/proxy/profiles?fails": 1<<20 + 1,
		"/api/v1/namespaces/shop/pods":                                       long,
		"/proxy/of/a/site/api/v1/pods":                                       long,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || len(body) != want {
			t.Errorf("%s: found %d bytes, %v; expected %d", path, len(body), err, want)
		}
	}
}
