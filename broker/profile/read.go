// SPDX-License-Identifier: Apache-2.0

package profile

import "github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"

// Problem is one thing that is wrong with a profile file.
type Problem = yamlfile.Problem

// Problems lists everything that is wrong with a file, sorted by position.
type Problems = yamlfile.Problems

// Parse reads a profile file of either form. It reports all violations of the format at
// once: unknown and repeated keys, values of the wrong type, more than one document, a file
// above MaxFileSize. It does not check what the values mean, which [Compile] does. The
// document has what could be read. It is nil if the root of the file could not be read.
//
// file is the name of the file in problems.
func Parse(file string, data []byte) (*Document, Problems) {
	r := yamlfile.NewReport(file)
	doc := parse(r, data)
	return doc, r.Finish()
}

func parse(r *yamlfile.Report, data []byte) *Document {
	doc := &Document{}
	if !yamlfile.Read(r, data, doc) {
		return nil
	}
	return doc
}

// Nearest returns the allowed value for which found is most likely a misspelling, or the
// empty string if no value is near.
func Nearest(found string, allowed []string) string { return yamlfile.Nearest(found, allowed) }
