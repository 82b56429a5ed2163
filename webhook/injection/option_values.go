// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/limits"
)

// The errors of these functions say what was expected, to end a sentence.

const (
	// maxItems is how many items the list of an annotation has at most. The
	// lists of profiles become arguments of the broker, one for each container.
	maxItems = 100

	// maxSocketPath is the longest path of a socket, in bytes: sun_path of
	// unix(7) less the NUL that ends it.
	maxSocketPath = 107
)

// MinMemory is the least memory that a broker may be limited to, and that a pod may
// request for it. Idle it takes half of that; the rest is for requests, of which the
// largest takes 4 MiB.
const MinMemory = "32Mi"

var minMemory = resource.MustParse(MinMemory)

// items splits a list. Spaces around items do not count.
func items(value, what string) ([]string, error) {
	if n := strings.Count(value, ",") + 1; n > maxItems {
		return nil, fmt.Errorf("at most %d %s; there are %d", maxItems, what, n)
	}
	list := strings.Split(value, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
		switch item := list[i]; {
		case item == "":
			return nil, fmt.Errorf("%s separated by single commas", what)
		case slices.Contains(list[:i], item):
			return nil, fmt.Errorf("%s separated by commas, each of them once; %s is there twice", what, limits.Quoted(item))
		}
	}
	return list, nil
}

// profileNames reads names of profiles. Of those that a profile may have, one
// with a comma or a semicolon, by which lists are taken apart, cannot be listed,
// nor one with a dollar sign, which means something in a container's arguments.
func profileNames(value string) ([]string, error) {
	const what = "names of profiles"
	names, err := items(value, what)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		switch {
		case len(name) > profile.MaxNameLength:
			return nil, fmt.Errorf("%s of at most %d bytes; %s is longer", what, profile.MaxNameLength, limits.Quoted(name))
		case strings.ContainsAny(name, ";$"):
			return nil, fmt.Errorf("%s separated by commas, without a semicolon or a dollar sign", what)
		case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
			return nil, fmt.Errorf("%s in printable characters", what)
		}
	}
	return names, nil
}

func containerNames(value string) ([]string, error) {
	return items(value, "names of containers")
}

// notBelow are directories that a container gets from the system and that no
// socket can be mounted into.
var notBelow = []string{"/proc", "/sys", "/dev"}

// checkSocketPath judges the directory that containers find their socket in.
func checkSocketPath(value string) error {
	const example = contract.SocketDir
	longest := maxSocketPath - len("/"+contract.SocketFile)
	switch {
	case !path.IsAbs(value):
		return errors.New("an absolute path such as " + example)
	case value != path.Clean(value):
		return fmt.Errorf("the path without what is superfluous in it, %s", limits.Quoted(path.Clean(value)))
	case value == "/":
		return errors.New("a directory below /, such as " + example)
	case len(value) > longest:
		return fmt.Errorf("at most %d bytes, since the path of a socket in there has at most %d; it has %d", longest, maxSocketPath, len(value))
	case strings.ContainsAny(value, ":$") || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("a path of printable characters without a colon or a dollar sign")
	case slices.ContainsFunc(notBelow, func(system string) bool { return within(system, value) }):
		return errors.New("a path outside of " + strings.Join(notBelow, ", ") + ", which the system makes")
	}
	return nil
}

// cpu reads a quantity of CPU into the list.
func cpu(into corev1.ResourceList, value string) error {
	q, err := resource.ParseQuantity(value)
	if err != nil || q.Sign() <= 0 || q.Cmp(*resource.NewMilliQuantity(q.MilliValue(), resource.DecimalSI)) != 0 {
		return errors.New("an amount of CPU from 1m on, in whole thousandths, such as 100m or 1")
	}
	into[corev1.ResourceCPU] = q
	return nil
}

// memory reads a quantity of memory into the list.
func memory(into corev1.ResourceList, value string) error {
	q, err := resource.ParseQuantity(value)
	switch {
	case err != nil || q.Cmp(*resource.NewQuantity(q.Value(), resource.BinarySI)) != 0:
		return errors.New("an amount of memory in bytes, such as 64Mi or 1Gi")
	case q.Cmp(minMemory) < 0:
		return fmt.Errorf("at least %s: a broker takes half of that idle, and requests need room beside", &minMemory)
	}
	into[corev1.ResourceMemory] = q
	return nil
}

func oneOf(value string, allowed ...string) error {
	if !slices.Contains(allowed, value) {
		last := len(allowed) - 1
		return fmt.Errorf("%s or %s", strings.Join(allowed[:last], ", "), allowed[last])
	}
	return nil
}

func statusPort(value string) (int32, error) {
	port, err := strconv.ParseUint(value, 10, 16)
	if err != nil || port < contract.MinStatusPort {
		return 0, fmt.Errorf("a port from %d to 65535", contract.MinStatusPort)
	}
	return int32(port), nil
}

// secretNames reads names of Secrets with keys.
func secretNames(value string) ([]string, error) {
	const what = "names of Secrets in the pod's namespace"
	names, err := items(value, what)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if secretName(name) != nil {
			return nil, fmt.Errorf("%s; %s can't be one", what, limits.Quoted(name))
		}
	}
	return names, nil
}

func secretName(value string) error {
	if len(validation.IsDNS1123Subdomain(value)) > 0 {
		return errors.New("the name of a Secret in the pod's namespace")
	}
	return nil
}
