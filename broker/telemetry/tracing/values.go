// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/net/http/httpguts"
)

// maxQueue is the largest queue of spans that can be set. Its spans take some 100 MB.
const maxQueue = 65536

// word returns a name in the form in which names are compared: in lower case and without
// spaces around it.
func word(text string) string { return strings.ToLower(strings.TrimSpace(text)) }

// into returns a function that parses a text and, if that succeeds, keeps the value in a
// variable.
func into[T any](variable *T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		value, err := parse(text)
		if err == nil {
			*variable = value
		}
		return err
	}
}

func trimmed(text string) (string, error) { return strings.TrimSpace(text), nil }

func boolean(text string) (bool, error) {
	switch word(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("expected true or false")
}

// optional returns a function that returns a pointer to the result of parse. So a nil pointer
// stands for a value that was not set.
func optional[T any](parse func(string) (T, error)) func(string) (*T, error) {
	return func(text string) (*T, error) {
		value, err := parse(text)
		return &value, err
	}
}

func oneOf(allowed ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		if name := word(text); slices.Contains(allowed, name) {
			return name, nil
		}
		return "", fmt.Errorf("expected one of %s", strings.Join(allowed, ", "))
	}
}

// count returns the number in a text, from 1 to most.
func count(most int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > most {
			return 0, fmt.Errorf("expected a number from 1 to %d", most)
		}
		return n, nil
	}
}

func milliseconds(text string) (time.Duration, error) {
	n, err := count(math.MaxInt32)(text)
	if err != nil {
		return 0, fmt.Errorf("expected milliseconds, a number from 1 to %d", math.MaxInt32)
	}
	return time.Duration(n) * time.Millisecond, nil
}

// list returns the names in a list that commas separate, sorted, each once. It refuses names
// that are not allowed.
func list(value string, allowed ...string) ([]string, error) {
	names := strings.Split(value, ",")
	for i, name := range names {
		if names[i] = word(name); !slices.Contains(allowed, names[i]) {
			return nil, fmt.Errorf("found %q, expected %s", names[i], strings.Join(allowed, ", "))
		}
	}
	if len(names) > 1 && slices.Contains(names, exporterNone) {
		return nil, errors.New("expected none as the only name")
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func exporters(text string) ([]string, error) {
	return list(text, exporterOTLP, exporterConsole, exporterNone, exporterGRPC, exporterHTTP)
}

func propagators(text string) ([]string, error) { return list(text, "tracecontext", "baggage", "none") }

// metricsExporter reports whether a list of exporters has prometheus.
func metricsExporter(text string) (bool, error) {
	names, err := list(text, "prometheus", "none")
	return slices.Contains(names, "prometheus"), err
}

func logsExporter(text string) error {
	_, err := list(text, "console", "none")
	return err
}

// samplers maps the names of samplers to their full names.
var samplers = map[string]string{
	"always_on": "", "always_off": "", "traceidratio": "",
	"parentbased_always_on": "", "parentbased_always_off": "", "parentbased_traceidratio": "",
	// Brokers before version 1 use these names.
	"always": "always_on", "never": "always_off", "ratio": "traceidratio",
}

func sampler(text string) (string, error) {
	name := word(text)
	full, known := samplers[name]
	if !known {
		return "", errors.New("expected always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off or parentbased_traceidratio")
	}
	return cmp.Or(full, name), nil
}

func ratio(text string) (float64, error) {
	part, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(part >= 0 && part <= 1) {
		return 0, errors.New("expected a number from 0 to 1")
	}
	return part, nil
}

// pairs calls add with each pair of key=value,…. Its errors do not quote a value.
func pairs(value string, add func(key, value string) error) error {
	for pair := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, raw, found := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		if !found || key == "" {
			return errors.New("expected key=value, separated by commas")
		}
		decoded, err := url.PathUnescape(strings.TrimSpace(raw))
		if err != nil {
			return fmt.Errorf("the value of %s has an invalid percent-encoding", key)
		}
		if err := add(key, decoded); err != nil {
			return err
		}
	}
	return nil
}

func attributes(text string) (list []attribute.KeyValue, err error) {
	err = pairs(text, func(key, value string) error {
		list = append(list, attribute.String(key, value))
		return nil
	})
	return list, err
}

func headers(text string) (map[string]string, error) {
	found := map[string]string{}
	return found, pairs(text, func(key, value string) error {
		if !httpguts.ValidHeaderFieldName(key) || !httpguts.ValidHeaderFieldValue(value) {
			return errors.New("expected names and values of HTTP headers")
		}
		found[key] = value
		return nil
	})
}

func headerValue(text string) (string, error) {
	if !httpguts.ValidHeaderFieldValue(text) {
		return "", errors.New("expected the value of an HTTP header")
	}
	return text, nil
}

// endpoint checks an endpoint, whatever its protocol. The error quotes the value unless the
// value may contain a password.
func endpoint(text string) (string, error) {
	value := strings.TrimSpace(text)
	_, err := parseEndpoint(value)
	if err != nil && !strings.Contains(text, "@") {
		err = fmt.Errorf("found %q, %w", value, err)
	}
	return value, err
}

// errEndpoint describes the forms of an endpoint.
var errEndpoint = errors.New("expected a URL such as http://collector:4317 or https://collector:4318, without user, query and fragment, or host:port for grpc")

// parseEndpoint parses an endpoint. If it is host:port, the URL has no scheme.
func parseEndpoint(value string) (*url.URL, error) {
	if !strings.Contains(value, "://") {
		if host, port, err := net.SplitHostPort(value); err != nil || host == "" || !isPort(port) {
			return nil, errEndpoint
		}
		return &url.URL{Host: value}, nil
	}
	u, err := url.Parse(value)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errEndpoint
	}
	switch u.Scheme {
	case "http", "https":
		if u.Hostname() == "" || (u.Port() != "" && !isPort(u.Port())) {
			return nil, errEndpoint
		}
	case "unix":
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			return nil, errors.New("expected the absolute path of a socket, such as unix:///run/collector.sock")
		}
	default:
		return nil, errEndpoint
	}
	return u, nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}
