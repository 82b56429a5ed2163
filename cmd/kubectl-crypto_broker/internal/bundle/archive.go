// SPDX-License-Identifier: Apache-2.0

// Package bundle collects information about an installation into an archive for support. It never
// writes a whole object. It copies only fields that contain no secret, so fields of a new version
// of Kubernetes, and values in unexpected places, stay out of the archive.
package bundle

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
)

// folder is the folder in the archive.
const folder = "crypto-broker-bundle"

// always lists what every archive leaves out.
const always = `This archive has no Secret, no value of an environment variable, and no private key. Of each object it has only the
fields that support needs:
- of annotations and labels: the ones of cryptobroker.io that Kubernetes or the operator reads, and app.kubernetes.io
- of pods: the state of the broker, and no other container
- of the operator's arguments: values of flags that are known to have no secret
- of the operator's logs: all lines, without values of its variables and without other arguments, if these have 6 bytes or more
- of webhook configurations: what identifies the certificates in the caBundle
- of profiles: all but the settings of an external key manager
- of events: those that the operator has written
`

var (
	// privateKey matches a private key in PEM.
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)
	// endOfPrivateKey matches what is left of a private key if the first lines of a log were cut off. Lines
	// may begin with a time.
	endOfPrivateKey = regexp.MustCompile(`(?m)(^([0-9]\S+ )?[A-Za-z0-9+/=]{1,76}\r?\n)*^.*-----END [A-Z ]*PRIVATE KEY-----`)
)

// keyLeftOut takes the place of a private key.
const keyLeftOut = "(a private key was left out)"

// archive is a tar.gz that is being written.
type archive struct {
	compressed *gzip.Writer
	files      *tar.Writer
	made       time.Time
	// names are the files so far, and leftOut lists what could not be read.
	names, leftOut []string
}

func newArchive(w io.Writer, made time.Time) *archive {
	compressed := gzip.NewWriter(w)
	return &archive{compressed: compressed, files: tar.NewWriter(compressed), made: made}
}

// text adds a file.
func (a *archive) text(name, content string) error {
	content = endOfPrivateKey.ReplaceAllString(privateKey.ReplaceAllString(content, keyLeftOut), keyLeftOut)
	a.names = append(a.names, name)
	header := &tar.Header{Name: path.Join(folder, name), Mode: 0o600, Size: int64(len(content)), ModTime: a.made, Format: tar.FormatPAX}
	if err := a.files.WriteHeader(header); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if _, err := io.WriteString(a.files, content); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// object adds a value as YAML.
func (a *archive) object(name string, value any) error {
	data, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return a.text(name, string(data))
}

// without records that something could not be read. It returns nil, because that does not make
// the archive invalid.
func (a *archive) without(what string, err error) error {
	a.leftOut = append(a.leftOut, fmt.Sprintf("%s: %s", what, apierror.OneLine(apierror.Plain(err))))
	return nil
}

// close adds the manifest, and ends the archive.
func (a *archive) close(about string) error {
	text := about + "\n\n" + always + "\nLeft out, because it could not be read:\n"
	if len(a.leftOut) == 0 {
		text += "- nothing\n"
	}
	for _, line := range a.leftOut {
		text += "- " + line + "\n"
	}
	text += "\nFiles:\n- " + strings.Join(a.names, "\n- ") + "\n"
	if err := a.text("MANIFEST.txt", text); err != nil {
		return err
	}
	if err := a.files.Close(); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	if err := a.compressed.Close(); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	return nil
}
