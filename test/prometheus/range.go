// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// Series is a series of values over time.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is one value of a series.
type Point struct {
	Time  time.Time
	Value float64
}

// UnmarshalJSON reads the time and the value, which Prometheus writes as a number and a string.
func (p *Point) UnmarshalJSON(data []byte) error {
	var pair [2]any
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	seconds, isNumber := pair[0].(float64)
	text, isText := pair[1].(string)
	if !isNumber || !isText {
		return errors.New("found another point than a number and a string")
	}
	value, err := strconv.ParseFloat(text, 64)
	*p = Point{time.UnixMilli(int64(seconds * 1000)), value}
	return err
}

// QueryRange returns the values of an expression between two times.
func (s *Server) QueryRange(ctx context.Context, expression string, from, to time.Time, step time.Duration) ([]Series, error) {
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Values []Point
			}
		}
	}
	parameters := url.Values{"query": {expression}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {fmt.Sprint(step.Seconds())}}
	if err := s.get(ctx, "/api/v1/query_range?"+parameters.Encode(), &answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("prometheus answers: %s", answer.Error)
	}
	var all []Series
	for _, each := range answer.Data.Result {
		all = append(all, Series{each.Metric, each.Values})
	}
	return all, nil
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
