// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// imageOfExample matches the image in the manifest of an example.
var imageOfExample = regexp.MustCompile(`registry\.example/hash-[a-z]+:v1`)

// hashed is the answer of an example.
type hashed struct{ Algorithm, Digest string }

func TestEachExampleServesInAPodWithABroker(t *testing.T) {
	t.Parallel()
	manifests, err := filepath.Glob(filepath.Join(shared.Repository, "docs", "examples", "*", "deployment.yaml"))
	must(t, err)
	if len(manifests) != 5 {
		t.Errorf("found %d examples, expected one for each of the five languages with a client", len(manifests))
	}
	for _, manifest := range manifests {
		language := filepath.Base(filepath.Dir(manifest))
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t, nil)
			profile := createProfile(t, namespace, "sha-512")
			pod := deployExample(t, namespace, language, manifest)
			input := []byte("4711 boxes")

			digest512 := sha512.Sum512(input)
			if found, want := hashBy(t, pod, bytes.NewReader(input)), (hashed{"sha-512", hex.EncodeToString(digest512[:])}); found != want {
				t.Errorf("found %+v, expected %+v", found, want)
			}

			changeHash(t, profile, "sha3-512")
			digest3 := sha3.Sum512(input)
			want := hashed{"sha3-512", hex.EncodeToString(digest3[:])}
			eventually(t, patience, "the example answers by the changed profile", func() error {
				if found := hashBy(t, pod, bytes.NewReader(input)); found != want {
					return fmt.Errorf("found %+v, expected %+v", found, want)
				}
				return nil
			})

			expectAnswerAfterTheEnd(t, pod, input, want)
		})
	}
}

// deployExample builds the image of an example, applies its manifest and returns its pod when it is ready.
func deployExample(t *testing.T, namespace, language, manifest string) *corev1.Pod {
	t.Helper()
	printed, err := environment.Command(t.Context(), "", os.Stderr, filepath.Join(shared.Repository, "hack", "examples", "build"), language)
	must(t, err)
	image, archive, _ := strings.Cut(strings.TrimSpace(printed), "\t")
	must(t, shared.cluster.Load(t.Context(), os.Stderr, archive))
	text, err := os.ReadFile(manifest)
	must(t, err)
	if !imageOfExample.Match(text) {
		t.Fatalf("%s has no image of the name that the test replaces", manifest)
	}
	_, err = kubectl(t, imageOfExample.ReplaceAllString(string(text), image), "apply", "--namespace", namespace, "--filename", "-")
	must(t, err)
	_, err = kubectl(t, "", "rollout", "status", "deployment/hash", "--namespace", namespace, "--timeout", "10m")
	must(t, err)
	return &readyPods(t, namespace, "app=hash", 1)[0]
}

// hashBy sends a body to an example.
func hashBy(t *testing.T, pod *corev1.Pod, body io.Reader) hashed {
	t.Helper()
	reply, err := http.Post("http://"+addressOf(pod)+"/hash", "application/octet-stream", body)
	must(t, err)
	return readHashed(t, reply)
}

func addressOf(pod *corev1.Pod) string { return net.JoinHostPort(pod.Status.PodIP, "8080") }

func readHashed(t *testing.T, reply *http.Response) (found hashed) {
	t.Helper()
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	must(t, err)
	if reply.StatusCode != http.StatusOK {
		t.Fatalf("found the status %s, expected 200: %s", reply.Status, text)
	}
	must(t, json.Unmarshal(text, &found))
	return found
}

// expectAnswerAfterTheEnd sends the second half of a body after the application was told to end and takes no more connections.
func expectAnswerAfterTheEnd(t *testing.T, pod *corev1.Pod, input []byte, want hashed) {
	t.Helper()
	first, second := input[:len(input)/2], input[len(input)/2:]
	reader, writer := io.Pipe()
	type outcome struct {
		reply *http.Response
		err   error
	}
	outcomes := make(chan outcome, 1)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addressOf(pod)+"/hash", reader)
	must(t, err)
	request.ContentLength = int64(len(input))
	// An application has begun with a request when it asks for the body.
	request.Header.Set("Expect", "100-continue")
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
	t.Cleanup(client.CloseIdleConnections)
	go func() {
		reply, err := client.Do(request) //nolint:bodyclose // readHashed closes it
		outcomes <- outcome{reply, err}
	}()
	_, err = writer.Write(first)
	must(t, err)

	must(t, shared.clientset.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}))
	eventually(t, 30*time.Second, "the example takes no more connections", func() error {
		connection, err := net.DialTimeout("tcp", addressOf(pod), time.Second)
		if err != nil {
			return nil //nolint:nilerr // that no connection is made is what the test waits for
		}
		return errors.Join(errors.New("it takes connections"), connection.Close())
	})
	_, err = writer.Write(second)
	must(t, err)
	must(t, writer.Close())
	ended := <-outcomes
	must(t, ended.err)
	if found := readHashed(t, ended.reply); found != want {
		t.Errorf("found %+v from a pod that ends, expected %+v", found, want)
	}
}
