// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// Sample is one value of an answer.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Query returns the present value of an expression, which has to be an instant vector or a scalar.
func (s *Server) Query(ctx context.Context, expression string) ([]Sample, error) {
	var answer struct {
		Status, Error string
		Data          struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := s.get(ctx, "/api/v1/query?query="+url.QueryEscape(expression), &answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("prometheus answers: %s", answer.Error)
	}
	switch answer.Data.ResultType {
	case "scalar":
		var value point
		if err := json.Unmarshal(answer.Data.Result, &value); err != nil {
			return nil, err
		}
		return []Sample{{Value: value.number}}, nil
	case "vector":
		var elements []struct {
			Metric map[string]string
			Value  point
		}
		if err := json.Unmarshal(answer.Data.Result, &elements); err != nil {
			return nil, err
		}
		samples := make([]Sample, len(elements))
		for i, each := range elements {
			samples[i] = Sample{each.Metric, each.Value.number}
		}
		return samples, nil
	}
	return nil, fmt.Errorf("found an answer of the type %q, expected a vector or a scalar", answer.Data.ResultType)
}

// LabelValues returns the values of a label in the series that a selector selects.
func (s *Server) LabelValues(ctx context.Context, label, selector string) ([]string, error) {
	var answer struct {
		Status, Error string
		Data          []string
	}
	path := "/api/v1/label/" + url.PathEscape(label) + "/values"
	if selector != "" {
		path += "?match[]=" + url.QueryEscape(selector)
	}
	if err := s.get(ctx, path, &answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("prometheus answers: %s", answer.Error)
	}
	return answer.Data, nil
}

func (s *Server) get(ctx context.Context, path string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	// A refused query is answered in the same form, with another HTTP status.
	return json.NewDecoder(response.Body).Decode(answer)
}

// point is a time and a value, which Prometheus writes as a number and a string.
type point struct{ number float64 }

func (p *point) UnmarshalJSON(data []byte) error {
	var pair [2]any
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	text, ok := pair[1].(string)
	if !ok {
		return errors.New("found a value that is no string")
	}
	number, err := strconv.ParseFloat(text, 64)
	p.number = number
	return err
}
