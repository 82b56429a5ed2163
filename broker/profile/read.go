// SPDX-License-Identifier: Apache-2.0

package profile

import "github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"

// Problem is one thing that is wrong with a profile file.
type Problem = yamlfile.Problem

// Problems lists everything that is wrong with a file, sorted by position.
type Problems = yamlfile.Problems

// Parse reads a profile file of either form and reports, all at once, what is
// not of the format: keys it does not know or finds twice, values of the wrong
// type, more than one document, a file above MaxFileSize. It does not judge
// what the values mean, which Compile does. The document holds what could be
// read and is nil where the root could not.
//
// file is only used to name the file in problems.
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

// Nearest returns the allowed value that what was found most likely stands for,
// or nothing where none is near.
func Nearest(found string, allowed []string) string { return yamlfile.Nearest(found, allowed) }
