// SPDX-License-Identifier: Apache-2.0

package tracing

import (
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

func text(into *string) func(string) error {
	return func(value string) error {
		*into = strings.TrimSpace(value)
		return nil
	}
}

func boolean(into *bool) func(string) error {
	return func(value string) error {
		switch word(value) {
		case "true":
			*into = true
		case "false":
			*into = false
		default:
			return errors.New("expected true or false")
		}
		return nil
	}
}

func optionalBoolean(into **bool) func(string) error {
	return func(value string) error {
		var is bool
		*into = &is
		return boolean(&is)(value)
	}
}

func oneOf(into *string, allowed ...string) func(string) error {
	return func(value string) error {
		if *into = word(value); !slices.Contains(allowed, *into) {
			return fmt.Errorf("expected one of %s", strings.Join(allowed, ", "))
		}
		return nil
	}
}

func number(into *int, least, most int) func(string) error {
	return func(value string) error {
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || n < least || n > most {
			return fmt.Errorf("expected a number from %d to %d", least, most)
		}
		*into = n
		return nil
	}
}

func milliseconds(into *time.Duration) func(string) error {
	return func(value string) error {
		var n int
		if err := number(&n, 1, math.MaxInt32)(value); err != nil {
			return fmt.Errorf("expected milliseconds, a number from 1 to %d", math.MaxInt32)
		}
		*into = time.Duration(n) * time.Millisecond
		return nil
	}
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
		return nil, errors.New("expected none without other names")
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func exporters(into *[]string) func(string) error {
	return func(value string) (err error) {
		*into, err = list(value, exporterOTLP, exporterConsole, exporterNone, exporterGRPC, exporterHTTP)
		return err
	}
}

func propagators(into *[]string) func(string) error {
	return func(value string) (err error) {
		*into, err = list(value, "tracecontext", "baggage", "none")
		return err
	}
}

func metricsExporter(prometheus *bool) func(string) error {
	return func(value string) error {
		names, err := list(value, "prometheus", "none")
		*prometheus = slices.Contains(names, "prometheus")
		return err
	}
}

func logsExporter(value string) error {
	_, err := list(value, "console", "none")
	return err
}

// samplers are the names of samplers, with the full names of those that are short.
var samplers = map[string]string{
	"always_on": "", "always_off": "", "traceidratio": "",
	"parentbased_always_on": "", "parentbased_always_off": "", "parentbased_traceidratio": "",
	// Brokers before version 1 have these names.
	"always": "always_on", "never": "always_off", "ratio": "traceidratio",
}

func sampler(into *string) func(string) error {
	return func(value string) error {
		name := word(value)
		full, known := samplers[name]
		if !known {
			return errors.New("expected always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off or parentbased_traceidratio")
		}
		if full != "" {
			name = full
		}
		*into = name
		return nil
	}
}

func ratio(into **float64) func(string) error {
	return func(value string) error {
		part, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(part >= 0 && part <= 1) {
			return errors.New("expected a number from 0 to 1")
		}
		*into = &part
		return nil
	}
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

func attributes(into *[]attribute.KeyValue) func(string) error {
	return func(value string) error {
		*into = nil
		return pairs(value, func(key, value string) error {
			*into = append(*into, attribute.String(key, value))
			return nil
		})
	}
}

func headers(into *map[string]string) func(string) error {
	return func(value string) error {
		*into = map[string]string{}
		return pairs(value, func(key, value string) error {
			if !httpguts.ValidHeaderFieldName(key) || !httpguts.ValidHeaderFieldValue(value) {
				return errors.New("expected names and values of HTTP headers")
			}
			(*into)[key] = value
			return nil
		})
	}
}

func headerValue(into *string) func(string) error {
	return func(value string) error {
		if !httpguts.ValidHeaderFieldValue(value) {
			return errors.New("expected the value of an HTTP header")
		}
		*into = value
		return nil
	}
}

// endpoint checks an endpoint, whatever its protocol. The error quotes the value unless the
// value may contain a password.
func endpoint(into *string) func(string) error {
	return func(value string) error {
		*into = strings.TrimSpace(value)
		_, err := parseEndpoint(*into)
		if err != nil && !strings.Contains(value, "@") {
			err = fmt.Errorf("found %q, %w", *into, err)
		}
		return err
	}
}

// errEndpoint says what an endpoint looks like.
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
