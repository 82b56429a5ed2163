// SPDX-License-Identifier: Apache-2.0

// Command probe is the program that the test of the cluster runs in its pods: a web server, a client and an admission
// webhook that refuses everything.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

const usage = `expected one of:
  probe serve ADDRESS                       answer HTTP requests
  probe refuse ADDRESS CERTIFICATE KEY      answer admission reviews over TLS: refused
  probe get URL                             print the answer; exit status 1 unless it is 200 OK`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 2 && arguments[0] == "serve":
		fmt.Println("probe serves on", arguments[1])
		return server(arguments[1], greet).ListenAndServe()
	case len(arguments) == 4 && arguments[0] == "refuse":
		fmt.Println("probe refuses on", arguments[1])
		return server(arguments[1], refuse).ListenAndServeTLS(arguments[2], arguments[3])
	case len(arguments) == 2 && arguments[0] == "get":
		return get(arguments[1])
	}
	return errors.New(usage)
}

func server(address string, handler http.HandlerFunc) *http.Server {
	return &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
}

func greet(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(w, "probe answers")
}

func refuse(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answer := map[string]any{
		"apiVersion": review.APIVersion,
		"kind":       review.Kind,
		"response": map[string]any{
			"uid":     review.Request.UID,
			"allowed": false,
			"status":  map[string]any{"message": "the probe refuses everything"},
		},
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		fmt.Fprintln(os.Stderr, "probe: writing the answer:", err)
	}
}

func get(url string) error {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(os.Stdout, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}
