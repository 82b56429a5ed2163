// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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
		var value Point
		if err := json.Unmarshal(answer.Data.Result, &value); err != nil {
			return nil, err
		}
		return []Sample{{Value: value.Value}}, nil
	case "vector":
		var elements []struct {
			Metric map[string]string
			Value  Point
		}
		if err := json.Unmarshal(answer.Data.Result, &elements); err != nil {
			return nil, err
		}
		samples := make([]Sample, len(elements))
		for i, each := range elements {
			samples[i] = Sample{each.Metric, each.Value.Value}
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

func (p *process) get(ctx context.Context, path string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+path, nil)
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
