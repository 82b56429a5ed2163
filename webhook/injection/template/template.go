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

// Template has the common settings of all brokers that an operator injects.
type Template struct {
	// Image is the broker's image. Its entrypoint is the broker.
	Image string

	// AllowedImages are further images that a pod may choose by annotation, each with its tag or
	// digest. The image of a pod has to be equal to one of them.
	AllowedImages []string

	// PullPolicy is the pull policy of the image. If it is empty, the API server's default is
	// used.
	PullPolicy corev1.PullPolicy

	// SocketGroup is the ID of the group that owns the sockets, from 1 to 65535, because a pod
	// with its own user namespace maps no more IDs.
	SocketGroup int64

	// StatusPort is the broker's port for probes, metrics and the digest of its set, from 1024 to
	// 65535, because the broker does not have the privilege to open a lower port.
	StatusPort int32

	// Resources are the resources of the broker's container. They are left out in a pod with
	// resources for the whole pod.
	Resources corev1.ResourceRequirements

	// LogLevel is the log level of the broker. If it is empty, the broker's default is used.
	LogLevel string

	// RequireFIPS makes brokers refuse operations that FIPS 140-3 does not approve, and refuse to
	// start without the validated cryptographic module.
	RequireFIPS bool

	// Traces has the settings of brokers for spans.
	Traces Traces

	// Audit has the settings of brokers for audit records.
	Audit Audit

	// KeyGateway is the address of the key gateway as host:port, or empty. Only brokers of
	// namespaces that may use key providers get it, see Inject of package injection.
	KeyGateway string

	// BrokerCertificates gives brokers with KeyGateway a certificate of their pod for the key
	// gateway.
	BrokerCertificates bool

	// Seal has the keys whose signatures brokers accept. It is not part of the stamp, because it
	// differs between namespaces and changes while the broker stays the same.
	Seal Seal

	// Version is the version of the operator, for the stamp.
	Version string

	// NamespaceUserIDs leaves the user and group ID of the broker to the platform, for platforms
	// such as OpenShift that assign them by namespace. Otherwise the broker runs as 65532.
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
	// A colon after the last slash begins the tag. A colon before that slash begins the port of a
	// registry.
	_, tag, tagged := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	switch {
	case image == "" || strings.ContainsFunc(image, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' || r == '*' }):
		return fmt.Errorf("%q, expected an image such as registry.example/broker:1.2.3", image)
	case pinned && !digestPattern.MatchString(digest):
		return fmt.Errorf("%q, expected behind @ a digest of the form sha256: and 64 hexadecimal digits", image)
	case !pinned && (!tagged || tag == ""):
		return fmt.Errorf("%q, expected an image with a tag or a digest: without either, it could be any image of the repository", image)
	}
	return nil
}

// digestPattern matches the digest of an image.
var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
