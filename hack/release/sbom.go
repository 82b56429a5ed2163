// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// billOf returns the bill of materials of a Go program, in JSON of CycloneDX 1.6 (ECMA-424): the modules that the
// linker wrote into it, the standard library, the Go Cryptographic Module, and the given further components.
func billOf(name, binary, version string, at time.Time, more ...cyclonedx.Component) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	own := cyclonedx.Component{
		BOMRef: "program", Type: cyclonedx.ComponentTypeApplication, Name: name, Version: version,
		PackageURL: purl(info.Path, version),
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Licenses:   &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
	}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	components := []cyclonedx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	if module := settings["GOFIPS140"]; module != "" && module != "off" {
		components = append(components, cyclonedx.Component{
			BOMRef: "fips140", Type: cyclonedx.ComponentTypeLibrary, Name: "Go Cryptographic Module", Version: module,
		})
	}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		of := module.Version
		if of == "(devel)" { // a module of this repository, whose parts all have one version
			of = version
		}
		components = append(components, library(module.Path, of, module.Sum))
	}
	components = append(components, more...)
	var all []string
	for _, component := range components {
		all = append(all, component.BOMRef)
	}
	bill := cyclonedx.NewBOM()
	bill.SpecVersion = cyclonedx.SpecVersion1_6
	// The serial number is derived from the program, as everything else in the file is.
	bill.SerialNumber = serial(sum)
	bill.Metadata = &cyclonedx.Metadata{Timestamp: at.Format(time.RFC3339), Component: &own}
	bill.Components = &components
	bill.Dependencies = &[]cyclonedx.Dependency{{Ref: own.BOMRef, Dependencies: &all}}
	var text bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bill, cyclonedx.SpecVersion1_6)
	return text.Bytes(), err
}

// serial returns a serial number that is derived from the program, in the form of a UUID of version 8 (RFC 9562, section
// 5.8).
func serial(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// library returns the component of a Go module. sum is its line in go.sum, empty if it has none.
func library(path, version, sum string) cyclonedx.Component {
	component := cyclonedx.Component{
		BOMRef: path + "@" + version, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl(path, version),
	}
	if sum != "" {
		component.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: sum}}
	}
	return component
}

// purl returns the package URL of a Go module, whose names have lower case in the type golang.
func purl(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
}
