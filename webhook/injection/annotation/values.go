// SPDX-License-Identifier: Apache-2.0

// Package annotation has the values that annotations of pods may have. Each set of values has a
// condition in Go for the webhook, the same condition in CEL for the policies in the API server,
// and a description for refusals.
package annotation

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

const (
	// MaxItems is the maximum number of items that the list of an annotation has. The lists of
	// profiles become arguments of the broker, one for each container.
	MaxItems = 100

	// maxSocketPath is the longest path of a socket, in bytes: sun_path of
	// unix(7) without the NUL at its end.
	maxSocketPath = 107

	// maxSocketDir is the longest directory of a socket, in bytes.
	maxSocketDir = maxSocketPath - len("/"+contract.SocketFile)
)

// Limits of the broker's requests and limits. An idle broker takes half of MinMemory. The rest is for
// requests, of which the largest takes 4 MiB. No machine has the largest amounts, and up to them a
// double has the exact number of parts (see celAmount).
const (
	minCPU, maxCPU = "1m", "10k"
	MinMemory      = "32Mi"
	maxMemory      = "1Pi"
)

// Values are values that an annotation may have.
type Values struct {
	// Expected describes them, to end a sentence.
	Expected string

	// Fits reports whether a text is one of them.
	Fits func(text string) bool

	// CEL is the same as Fits in CEL, for the text in the variable value.
	CEL string
}

// Any allows every text, for annotations whose allowed values depend on the pod.
var Any = Values{
	Fits: func(string) bool { return true },
	CEL:  "true",
}

// OneOf are these values and no other.
func OneOf(allowed ...string) Values {
	last := len(allowed) - 1
	return Values{
		Expected: fmt.Sprintf("%s or %s", strings.Join(allowed[:last], ", "), allowed[last]),
		Fits:     func(text string) bool { return slices.Contains(allowed, text) },
		CEL:      "value in " + CELList(allowed),
	}
}

// listOf are lists of at most [MaxItems] items, separated by commas. what names the items in the
// plural, and rule is the end of the sentence with further requirements on an item.
func listOf(what, rule string, item Values) Values {
	return Values{
		Expected: fmt.Sprintf("%s separated by commas, at most %d and each of them once%s", what, MaxItems, rule),
		Fits: func(text string) bool {
			if strings.Count(text, ",") >= MaxItems {
				return false
			}
			list := Items(text)
			for i, text := range list {
				if slices.Contains(list[:i], text) || !item.Fits(text) {
					return false
				}
			}
			return true
		},
		CEL: fmt.Sprintf("[value.split(',', %d).map(item, item.trim())].all(list, size(list) <= %d && size(list.distinct()) == size(list) &&\nlist.all(value, %s))",
			MaxItems+1, MaxItems, item.CEL),
	}
}

// Items splits a list, and removes spaces around items.
func Items(text string) []string {
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// celPrintable is a class of characters in CEL: those for which printable is true.
const celPrintable = `[\pL\pM\pN\pP\pS ]`

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// ProfileNames are lists of names of profiles. A name with a comma or a semicolon cannot be
// listed, because both are separators. A name with a dollar sign cannot be listed, because it
// refers to a variable in a container's arguments.
var ProfileNames = listOf("names of profiles",
	fmt.Sprintf(", of at most %d bytes in printable characters, without a semicolon or a dollar sign", profile.MaxNameLength),
	Values{
		Fits: func(text string) bool {
			return text != "" && len(text) <= profile.MaxNameLength && printable(text) && !strings.ContainsAny(text, ";$")
		},
		CEL: fmt.Sprintf("size(bytes(value)) <= %d && value.matches(r'^%s+$') && !value.matches('[;$]')", profile.MaxNameLength, celPrintable),
	})

// ContainerNames are lists of any names. Whether the pod has such containers is checked
// elsewhere.
var ContainerNames = listOf("names of containers", "", Values{
	Fits: func(text string) bool { return text != "" },
	CEL:  "value != ''",
})

// SecretName is the name of one Secret.
var SecretName = Values{
	Expected: "the name of a Secret in the pod's namespace",
	Fits:     func(text string) bool { return len(validation.IsDNS1123Subdomain(text)) == 0 },
	CEL:      "!format.dns1123Subdomain().validate(value).hasValue()",
}

// SecretNames are lists of names of Secrets.
var SecretNames = listOf("names of Secrets in the pod's namespace", ", of lower-case letters, digits, hyphens and dots", SecretName)

// notBelow are directories that the system provides and into which no socket can be mounted.
var notBelow = []string{"/proc", "/sys", "/dev"}

// SocketDirs are the directories that containers may find their socket in.
var SocketDirs = Values{
	Expected: fmt.Sprintf("an absolute path such as %s, at most %d bytes in printable characters, without a colon or a dollar sign, "+
		"without //, /./, /../ or a slash at the end, and outside of %s", contract.SocketDir, maxSocketDir, strings.Join(notBelow, ", ")),
	Fits: func(text string) bool {
		return path.IsAbs(text) && text == path.Clean(text) && text != "/" && len(text) <= maxSocketDir &&
			printable(text) && !strings.ContainsAny(text, ":$") &&
			!slices.ContainsFunc(notBelow, func(system string) bool { return text == system || strings.HasPrefix(text, system+"/") })
	},
	CEL: fmt.Sprintf("size(bytes(value)) <= %d && value.matches(r'^(/%s+)+$') &&\n!value.matches('//|/$|[:$]|/[.]{1,2}(/|$)|^(%s)(/|$)')",
		maxSocketDir, celPrintable, strings.Join(notBelow, "|")),
}

// CPUAmounts are quantities of CPU.
var CPUAmounts = Values{
	Expected: fmt.Sprintf("an amount of CPU from %s to %s, in whole thousandths, such as 100m or 1", minCPU, maxCPU),
	Fits: fitsAmount(minCPU, maxCPU, func(q resource.Quantity) *resource.Quantity {
		return resource.NewMilliQuantity(q.MilliValue(), resource.DecimalSI)
	}),
	CEL: celAmount(minCPU, maxCPU, 1000, "m"),
}

// MemoryAmounts are quantities of memory.
var MemoryAmounts = Values{
	Expected: fmt.Sprintf("an amount of memory from %s to %s, in whole bytes, such as 64Mi or 1Gi: an idle broker takes half of %[1]s, and requests take more", MinMemory, maxMemory),
	Fits: fitsAmount(MinMemory, maxMemory, func(q resource.Quantity) *resource.Quantity {
		return resource.NewQuantity(q.Value(), resource.BinarySI)
	}),
	CEL: celAmount(MinMemory, maxMemory, 1, ""),
}

// fitsAmount is the condition of amounts from least to most that are as large as rounded says.
func fitsAmount(least, most string, rounded func(resource.Quantity) *resource.Quantity) func(string) bool {
	from, to := resource.MustParse(least), resource.MustParse(most)
	return func(text string) bool {
		q, err := resource.ParseQuantity(text)
		return err == nil && q.Cmp(from) >= 0 && q.Cmp(to) <= 0 && q.Cmp(*rounded(q)) == 0
	}
}

// celAmount is an expression about quantities from least to most that are a whole number of parts, which
// have a suffix. CEL can't round a quantity. It makes a double of the quantity and a quantity of the rounded
// double.
func celAmount(least, most string, parts int, suffix string) string {
	return fmt.Sprintf("isQuantity(value) && [quantity(value)].all(q, q.compareTo(quantity('%s')) >= 0 && q.compareTo(quantity('%s')) <= 0 &&\n"+
		"q.compareTo(quantity(string(int(q.asApproximateFloat() * %d.0 + 0.5)) + '%s')) == 0)", least, most, parts, suffix)
}

// ratio matches a number from 0 to 1 that Go and CEL parse alike.
var ratio = regexp.MustCompile("^(0|1|0[.][0-9]{1,9})$")

// Ratio is a number from 0 to 1.
var Ratio = Values{
	Expected: "a number from 0 to 1 such as 0.01, with at most 9 digits behind the point",
	Fits:     ratio.MatchString,
	CEL:      fmt.Sprintf("value.matches('%s')", ratio),
}

// StatusPorts are the ports that a broker may open.
var StatusPorts = Values{
	Expected: fmt.Sprintf("a port from %d to 65535", contract.MinStatusPort),
	Fits: func(text string) bool {
		port, err := strconv.ParseUint(text, 10, 16)
		return err == nil && port >= contract.MinStatusPort
	},
	CEL: fmt.Sprintf("value.matches('^0*[1-9][0-9]{3,4}$') && int(value) >= %d && int(value) <= 65535", contract.MinStatusPort),
}
