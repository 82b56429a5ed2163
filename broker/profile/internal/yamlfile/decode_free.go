// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// free reads a value of any form (KMS Config and Cache): text, whole numbers, finite
// decimals, booleans, lists and maps with text keys. Its problems never quote a value, which
// may be secret.
func (d *decoder) free(n *yaml.Node, at Place, depth int) (any, bool) {
	if depth == 0 {
		d.At(at, positionOf(n), "nests deeper than %d levels", MaxDepth)
		return nil, false
	}
	n, ok := d.resolve(n, at)
	if !ok {
		return nil, false
	}
	switch n.Kind {
	case yaml.MappingNode:
		result := map[string]any{}
		for _, e := range d.entries(n, at) {
			where := at.Field(e.name)
			d.Positions[where] = positionOf(e.value)
			if value, ok := d.free(e.value, where, depth-1); ok {
				result[e.name] = value
			}
		}
		return result, true
	case yaml.SequenceNode:
		result := make([]any, 0, len(n.Content))
		for i, item := range n.Content {
			where := at.Index(i)
			d.Positions[where] = positionOf(item)
			if value, ok := d.free(item, where, depth-1); ok {
				result = append(result, value)
			}
		}
		return result, true
	}
	return d.freeScalar(n, at)
}

const wantFree = "expected text, a whole number, a decimal number, true or false, a list or a map"

func (d *decoder) freeScalar(n *yaml.Node, at Place) (any, bool) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return n.Value, true
	case "!!bool":
		var value bool
		if err := n.Decode(&value); err == nil {
			return value, true
		}
	case "!!int":
		if value, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			return int(value), true
		}
	case "!!float":
		if value, err := strconv.ParseFloat(n.Value, 64); err == nil && !math.IsInf(value, 0) && !math.IsNaN(value) {
			if whole := int(value); math.Abs(value) < 1<<53 && float64(whole) == value {
				return whole, true // the file has "1.0" or "1e3"; Marshal writes a whole number
			}
			return value, true
		}
	case "!!null":
		d.At(at, positionOf(n), "has no value, %s", wantFree)
		return nil, false
	}
	d.At(at, positionOf(n), "found a value of a kind that is not supported, %s", wantFree)
	return nil, false
}
