// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"slices"
	"testing"
)

func TestWhatStandardsSayOfPrimitives(t *testing.T) {
	for name, want := range map[string]struct {
		strength               int
		kind                   Kind
		cnsa                   CNSA
		deprecated, disallowed Year
	}{
		"sha-1":       {61, Symmetric, OutsideCNSA, 2030, 2030},
		"sha-256":     {128, Symmetric, OutsideCNSA, Never, Never},
		"sha-384":     {192, Symmetric, InCNSA1 | InCNSA2, Never, Never},
		"sha-512":     {256, Symmetric, InCNSA2, Never, Never},
		"sha3-512":    {256, Symmetric, OutsideCNSA, Never, Never},
		"aes-128":     {128, Symmetric, OutsideCNSA, Never, Never},
		"aes-256":     {256, Symmetric, InCNSA1 | InCNSA2, Never, Never},
		"aes":         {128, Symmetric, OutsideCNSA, Never, Never},
		"rsa-1024":    {80, Classical, OutsideCNSA, 2013, 2013},
		"rsa-2048":    {112, Classical, OutsideCNSA, 2030, 2035},
		"rsa":         {112, Classical, OutsideCNSA, 2030, 2035},
		"rsa-3072":    {128, Classical, InCNSA1, 2035, 2035},
		"p-224":       {112, Classical, OutsideCNSA, 2030, 2035},
		"p-256":       {128, Classical, OutsideCNSA, 2035, 2035},
		"p-384":       {192, Classical, InCNSA1, 2035, 2035},
		"p-521":       {256, Classical, OutsideCNSA, 2035, 2035},
		"ed25519":     {128, Classical, OutsideCNSA, 2035, 2035},
		"ml-dsa-65":   {192, PostQuantum, OutsideCNSA, Never, Never},
		"ml-dsa-87":   {256, PostQuantum, InCNSA2, Never, Never},
		"ml-kem-768":  {192, PostQuantum, OutsideCNSA, Never, Never},
		"ml-kem-1024": {256, PostQuantum, InCNSA2, Never, Never},
	} {
		found := allPrimitives()[name]
		if found.Name != name || found.Strength != want.strength || found.Kind != want.kind || found.CNSA != want.cnsa ||
			found.DeprecatedAfter != want.deprecated || found.DisallowedAfter != want.disallowed {
			t.Errorf("%s: found %+v, expected %+v", name, found, want)
		}
	}
}

// allPrimitives returns the primitives of all sizes that have names, and of no size, by their names.
func allPrimitives() map[string]Primitive {
	all := map[string]Primitive{}
	for _, row := range primitives {
		for _, bits := range append([]int{0}, row.sizes...) {
			all[row.at(bits).Name] = row.at(bits)
		}
	}
	for d := range digests[1:] {
		p := Digest(d + 1).Primitive()
		all[p.Name] = p
	}
	return all
}

func TestEachAlgorithmHasPrimitivesWithNames(t *testing.T) {
	names := PrimitiveNames()
	check := func(of string, halves ...[]Primitive) {
		t.Helper()
		for _, half := range halves {
			if len(half) == 0 {
				t.Errorf("%s has no primitive", of)
			}
			for _, p := range half {
				if !slices.Contains(names, p.Name) || p.Strength == 0 || p.Kind == 0 || p.CNSA == 0 || p.DisallowedAfter == 0 || p.DeprecatedAfter > p.DisallowedAfter {
					t.Errorf("%s: found %+v, expected one of the names %v", of, p, names)
				}
			}
		}
	}
	for i := range digests[1:] {
		check(Digest(i+1).String(), []Primitive{Digest(i + 1).Primitive()})
	}
	for _, key := range keys {
		row, _ := findPrimitive(key.family)
		for _, size := range row.sizes {
			if size == FixedSize {
				size = max(0, key.MinSize)
			}
			p, known := key.Primitive(size)
			if _, wrong := key.Primitive(-7); !known || wrong {
				t.Errorf("%s keys of %d bits are known: %v; of -7 bits: %v", key.Name, size, known, wrong)
			}
			check(key.Name, []Primitive{p})
		}
	}
	for i := range wrappings[1:] {
		for _, size := range append([]int{0}, Wrapping(i+1).KeySizes()...) {
			if size != 0 {
				checkStrength(t, Wrapping(i+1).String(), Wrapping(i+1).Primitives(max(0, size)), first(Wrapping(i+1).Strength(size)))
			}
			check(Wrapping(i+1).String(), Wrapping(i+1).Primitives(max(0, size))...)
		}
	}
	for i := range sessions[1:] {
		check(Session(i+1).String(), Session(i+1).Primitives()...)
		checkStrength(t, Session(i+1).String(), Session(i+1).Primitives(), first(Session(i+1).Strength()))
	}
	for i := range streams[1:] {
		check(Stream(i+1).String(), Stream(i+1).Primitives())
		checkStrength(t, Stream(i+1).String(), [][]Primitive{Stream(i + 1).Primitives()}, first(Stream(i+1).Strength()))
	}
}

func first(bits int, _ string) int { return bits }

// checkStrength checks that primitives are as strong as the row of the algorithm says.
func checkStrength(t *testing.T, of string, halves [][]Primitive, want int) {
	t.Helper()
	found := 0
	for _, half := range halves {
		weakest := slices.MinFunc(half, func(a, b Primitive) int { return a.Strength - b.Strength })
		found = max(found, weakest.Strength)
	}
	if found != want {
		t.Errorf("%s has a strength of %d bits, and its primitives have %d", of, want, found)
	}
}

func TestAStrongerKeyOfAFamilyIsNeverDisallowedEarlier(t *testing.T) {
	for _, row := range primitives {
		for i, bits := range row.sizes[1:] {
			weak, strong := row.at(row.sizes[i]), row.at(bits)
			if strong.Strength < weak.Strength || strong.DisallowedAfter < weak.DisallowedAfter || strong.DeprecatedAfter < weak.DeprecatedAfter {
				t.Errorf("found %+v before %+v", weak, strong)
			}
		}
	}
}

func TestNamesOfRSAKeysHaveSizesThatProfilesMayAllow(t *testing.T) {
	for name, want := range map[string]bool{
		"rsa-2048": true, "rsa-2056": true, "rsa-16384": true, "rsa-512": false, "rsa-99999": false, "rsa-02048": false, "rsa": false, "rsa-": false, "p-256": false,
	} {
		if IsRSAName(name) != want {
			t.Errorf("%s: found %v", name, !want)
		}
	}
}
