// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// CBOM is an inventory as a Cryptography Bill of Materials of CycloneDX 1.6 (ECMA-424). It has a
// component for each algorithm with its keys, with the places where it was used, and a component for
// each workload, which depends on its algorithms.
type CBOM struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	SerialNumber string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp  time.Time  `json:"timestamp"`
	Properties []property `json:"properties"`
}

type component struct {
	Type       string            `json:"type"`
	Ref        string            `json:"bom-ref"`
	Group      string            `json:"group,omitempty"`
	Name       string            `json:"name"`
	Properties []property        `json:"properties,omitempty"`
	Evidence   *evidence         `json:"evidence,omitempty"`
	Crypto     *cryptoProperties `json:"cryptoProperties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type evidence struct {
	Occurrences []occurrence `json:"occurrences"`
}

type occurrence struct {
	Location string `json:"location"`
	Context  string `json:"additionalContext"`
}

type cryptoProperties struct {
	AssetType string              `json:"assetType"`
	Algorithm algorithmProperties `json:"algorithmProperties"`
}

type algorithmProperties struct {
	Primitive string   `json:"primitive"`
	Parameter string   `json:"parameterSetIdentifier,omitempty"`
	Curve     string   `json:"curve,omitempty"`
	Mode      string   `json:"mode,omitempty"`
	Padding   string   `json:"padding,omitempty"`
	Functions []string `json:"cryptoFunctions"`
	Classical int      `json:"classicalSecurityLevel"`
	// Quantum is the highest category of NIST, from 1 to 5, that the strength reaches, or 0.
	Quantum int `json:"nistQuantumSecurityLevel"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// CBOM returns the inventory as a CBOM. Inventories that are equal have the same serial number.
func (i *Inventory) CBOM() (*CBOM, error) {
	serial, err := i.serial()
	if err != nil {
		return nil, err
	}
	bom := &CBOM{
		Format: "CycloneDX", SpecVersion: "1.6", SerialNumber: serial, Version: 1, Components: []component{}, Dependencies: []dependency{},
		Metadata: metadata{i.Made, []property{
			{"cryptobroker:brokers", fmt.Sprint(i.Brokers)}, {"cryptobroker:answered", fmt.Sprint(i.Answered)},
		}},
	}
	for _, u := range i.Unknown {
		bom.Metadata.Properties = append(bom.Metadata.Properties, property{"cryptobroker:unknown", u.Namespace + "/" + u.Pod + ": " + u.Why})
	}
	places := map[string]int{} // of components, by their reference
	for n := range i.Uses {
		bom.add(&i.Uses[n], places)
	}
	return bom, nil
}

// serial returns a UUID of version 8 (RFC 9562), from a hash of the inventory.
func (i *Inventory) serial() (string, error) {
	data, err := json.Marshal(i)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]), nil
}

// add adds a use: to its algorithm, and to its workload.
func (b *CBOM) add(u *Use, places map[string]int) {
	asset, place := u.asset(), u.Namespace+"/"+u.Workload
	at, known := places[asset.Ref]
	if !known {
		at = len(b.Components)
		places[asset.Ref] = at
		b.Components = append(b.Components, asset)
	}
	found := &b.Components[at]
	found.Evidence.Occurrences = append(found.Evidence.Occurrences, occurrence{
		place, fmt.Sprintf("%s by the profile %q, container %q: %d calls, the last at %s", u.Operation, u.Profile, u.Container, u.Calls, u.Last.UTC().Format(time.RFC3339)),
	})
	for _, function := range u.functions() {
		if all := &found.Crypto.Algorithm.Functions; !slices.Contains(*all, function) {
			*all = append(*all, function)
		}
	}
	ref := "workload/" + place
	at, known = places[ref]
	if !known {
		at = len(b.Dependencies)
		places[ref] = at
		b.Components = append(b.Components, component{Type: "application", Ref: ref, Group: u.Namespace, Name: u.Workload})
		b.Dependencies = append(b.Dependencies, dependency{Ref: ref})
	}
	if on := &b.Dependencies[at].DependsOn; !slices.Contains(*on, asset.Ref) {
		*on = append(*on, asset.Ref)
	}
}

// asset returns the component of a use's algorithm, without the functions.
func (u *Use) asset() component {
	var parts []string
	if u.Algorithm != "" {
		parts = append(parts, u.Algorithm)
	}
	for _, key := range u.Keys {
		parts = append(parts, key.String())
	}
	a := algorithmProperties{Primitive: u.primitive(), Functions: []string{}, Classical: u.Strength, Quantum: u.category()}
	if len(u.Keys) > 0 && u.Keys[0].Bits > 0 {
		a.Parameter = fmt.Sprint(u.Keys[0].Bits)
	}
	if curve := u.Primitives[0]; strings.HasPrefix(curve, "p-") {
		a.Curve = strings.ToUpper(curve)
	}
	switch {
	case strings.Contains(u.Algorithm, "gcm"):
		a.Mode = "gcm"
	case strings.HasPrefix(u.Algorithm, "rsa-oaep"):
		a.Padding = "oaep"
	case strings.HasPrefix(u.Algorithm, "rsa-with"):
		a.Padding = "pkcs1v15"
	case strings.HasPrefix(u.Algorithm, "rsa-pss"):
		a.Padding = "other"
	}
	name := strings.Join(parts, ", ")
	return component{
		Type: "cryptographic-asset", Ref: fmt.Sprintf("algorithm/%s/%s/%s/%t", a.Primitive, name, strings.Join(u.Primitives, "+"), u.FIPS), Name: name,
		Properties: []property{
			{"cryptobroker:primitives", strings.Join(u.Primitives, " ")}, {"cryptobroker:postQuantum", string(u.PostQuantum)},
			{"cryptobroker:nist", u.NIST()}, {"cryptobroker:cnsa", string(u.CNSA)}, {"cryptobroker:fips", fmt.Sprint(u.FIPS)},
		},
		Evidence: &evidence{[]occurrence{}},
		Crypto:   &cryptoProperties{"algorithm", a},
	}
}

// category returns a category of NIST that the use reaches at least (FIPS 203, section 8).
func (u *Use) category() int {
	switch {
	case u.PostQuantum == Vulnerable || u.Strength < 128:
		return 0
	case u.Strength < 192:
		return 1
	case u.Strength < 256:
		return 3
	default:
		return 5
	}
}

// primitive returns the word of CycloneDX for the algorithm.
func (u *Use) primitive() string {
	functions := u.functions()
	switch {
	case strings.HasPrefix(u.Algorithm, "shake"):
		return "xof"
	case slices.Contains(functions, "digest"):
		return "hash"
	case slices.Contains(functions, "sign"), slices.Contains(functions, "verify"):
		return "signature"
	case profile.Section(u.Operation) == "API.Session":
		return "key-agree"
	case slices.Contains(functions, "other"):
		return "other"
	case strings.HasPrefix(u.Algorithm, "rsa"):
		return "pke"
	case strings.HasPrefix(u.Algorithm, "hpke"):
		return "kem"
	default:
		return "ae"
	}
}

// functions returns the words of CycloneDX for the functions of the operation.
func (u *Use) functions() []string {
	operation, known := profile.FindOperation(u.Operation)
	if !known {
		return nil // from a newer broker
	}
	return operation.Row().Functions
}
