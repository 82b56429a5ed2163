// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// request is one request of the operator, from the API server's audit log.
type request struct {
	verb string
	// resource has its subresource behind a slash.
	resource        string
	namespace, name string
	code            int
	// ended is when the API server answered; for a watch, when it began to.
	ended time.Time
}

// audit reads the audit log as it grows.
type audit struct {
	file     *os.File
	reader   *bufio.Reader
	rest     []byte // of a line that is not complete yet
	requests []request
}

func openAudit(path string) (*audit, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &audit{file: file, reader: bufio.NewReaderSize(file, 1<<20)}, nil
}

// read reads what is new.
func (a *audit) read() error {
	for {
		line, err := a.reader.ReadBytes('\n')
		a.rest = append(a.rest, line...)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		if err := a.add(a.rest); err != nil {
			return err
		}
		a.rest = nil
	}
}

func (a *audit) add(line []byte) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	var event struct {
		Stage          string    `json:"stage"`
		StageTimestamp time.Time `json:"stageTimestamp"`
		Verb           string    `json:"verb"`
		RequestURI     string    `json:"requestURI"`
		ObjectRef      *struct{ Resource, Subresource, Namespace, Name string }
		ResponseStatus struct {
			Code int `json:"code"`
		} `json:"responseStatus"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	if event.Verb == "watch" != (event.Stage == "ResponseStarted") {
		return nil // the end of a watch, which was counted at its beginning
	}
	r := request{verb: event.Verb, resource: event.RequestURI, code: event.ResponseStatus.Code, ended: event.StageTimestamp}
	if o := event.ObjectRef; o != nil {
		r.resource, r.namespace, r.name = o.Resource, o.Namespace, o.Name
		if o.Subresource != "" {
			r.resource += "/" + o.Subresource
		}
	}
	a.requests = append(a.requests, r)
	return nil
}

// kind is what a request counts as in the report.
type kind string

// The kinds of requests, in the order of the report's columns.
const (
	kindSets     kind = "ConfigMaps"
	kindRecord   kind = "record"
	kindPods     kind = "pods"
	kindStatuses kind = "statuses"
	kindEvents   kind = "events"
	kindOther    kind = "other writes"
	kindReads    kind = "reads"
	kindLeases   kind = "leases"
	kindWatches  kind = "watches"
)

// kind returns what the request counts as. operatorNamespace is where the record is.
func (r request) kind(operatorNamespace string) kind {
	switch {
	case r.verb == "watch":
		return kindWatches
	case r.resource == "leases":
		return kindLeases
	case r.verb == "get" || r.verb == "list":
		return kindReads
	case r.resource == "configmaps" && r.namespace == operatorNamespace:
		return kindRecord
	case r.resource == "configmaps":
		return kindSets
	case r.resource == "pods/status":
		return kindPods
	case r.resource == "cryptoprofiles/status", r.resource == "clustercryptoprofiles/status":
		return kindStatuses
	case r.resource == "events":
		return kindEvents
	default:
		return kindOther
	}
}
