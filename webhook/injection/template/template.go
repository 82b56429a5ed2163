// SPDX-License-Identifier: Apache-2.0

package template

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// Template is what all brokers that an operator injects have in common.
type Template struct {
	// Image is the broker's image. Its entrypoint is the broker.
	Image string

	// AllowedImages are further images that a pod may choose by annotation, each
	// with its tag or digest. An image is allowed only if it is in here letter by
	// letter.
	AllowedImages []string

	// PullPolicy of the image; the API server's default if empty.
	PullPolicy corev1.PullPolicy

	// SocketGroup is the ID of the group that owns the sockets, from 1 to
	// 65535: a pod with a user namespace of its own maps no more.
	SocketGroup int64

	// StatusPort is the broker's port for probes, metrics and the digest it
	// serves, from 1024 to 65535: the broker runs without the right to open a
	// lower one.
	StatusPort int32

	// Resources of the broker's container. They are left out in a pod whose
	// resources are set for the pod as a whole.
	Resources corev1.ResourceRequirements

	// LogLevel of the broker; the broker's default if empty.
	LogLevel string

	// RequireFIPS makes brokers that refuse what FIPS 140-3 does not approve,
	// and refuse to start without the validated cryptographic module.
	RequireFIPS bool

	// Traces say where brokers export the spans of their calls.
	Traces Traces

	// Audit says where brokers send their audit records.
	Audit Audit

	// KeyGateway is the address of the key gateway as host:port, empty if there is none.
	// Only brokers of namespaces that may use key providers get it, see Inject of package injection.
	KeyGateway string

	// BrokerCertificates gives brokers with KeyGateway a certificate of their pod for it, too.
	BrokerCertificates bool

	// Seal says whose signature profiles need. It does not count for the stamp, because
	// it differs between namespaces and changes while the broker stays the same.
	Seal Seal

	// Version is the version of the operator, for the stamp.
	Version string

	// NamespaceUserIDs leaves user and group ID of the broker to the
	// platform, which assigns them by namespace, as OpenShift does. Otherwise
	// the broker runs as 65532.
	NamespaceUserIDs bool
}

// Validate names every field that cannot be used.
func (t Template) Validate() error {
	var problems []error
	if t.Image == "" {
		problems = append(problems, errors.New("the field Image is empty, expected the broker's image"))
	}
	for _, image := range t.AllowedImages {
		if err := CheckAllowedImage(image); err != nil {
			problems = append(problems, fmt.Errorf("the field AllowedImages has %w", err))
		}
	}
	if t.SocketGroup < 1 || t.SocketGroup > 65535 {
		problems = append(problems, fmt.Errorf("the field SocketGroup is %d, expected a group ID from 1 to 65535", t.SocketGroup))
	}
	if t.StatusPort < contract.MinStatusPort || t.StatusPort > 65535 {
		problems = append(problems, fmt.Errorf("the field StatusPort is %d, expected a port from %d to 65535", t.StatusPort, contract.MinStatusPort))
	}
	switch t.PullPolicy {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		problems = append(problems, fmt.Errorf("the field PullPolicy is %q, expected Always, IfNotPresent or Never", t.PullPolicy))
	}
	t.Traces.Check(func(field, found, expected string) {
		problems = append(problems, fmt.Errorf("the field Traces.%s is %q, expected %s", field, found, expected))
	})
	t.Audit.Check(func(field, found, expected string) {
		problems = append(problems, fmt.Errorf("the field Audit.%s is %q, expected %s", field, found, expected))
	})
	if t.Version == "" {
		problems = append(problems, errors.New("the field Version is empty, expected the operator's version"))
	}
	if len(problems) > 0 {
		return fmt.Errorf("broker template: %w", errors.Join(problems...))
	}
	return nil
}

// CheckAllowedImage returns an error if an image can't be one of
// Template.AllowedImages.
func CheckAllowedImage(image string) error {
	name, digest, pinned := strings.Cut(image, "@")
	// A colon behind the last slash begins the tag. A colon in front of that slash
	// begins the port of a registry.
	_, tag, tagged := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	switch {
	case image == "" || strings.ContainsFunc(image, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' || r == '*' }):
		return fmt.Errorf("%q, expected an image such as registry.example/broker:1.2.3", image)
	case pinned && !digestPattern.MatchString(digest):
		return fmt.Errorf("%q, expected behind @ a digest of the form sha256: and 64 hexadecimal digits", image)
	case !pinned && (!tagged || tag == ""):
		return fmt.Errorf("%q, expected an image with a tag or a digest: without, it would be any image of the repository", image)
	}
	return nil
}

// digestPattern matches the digest of an image.
var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
