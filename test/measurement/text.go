// SPDX-License-Identifier: Apache-2.0

package measurement

import "fmt"

// none stands for a missing figure.
const none = "–"

// Text returns the median and the quartiles of values, or a dash if there are no values.
func Text(values []float64) string {
	if len(values) == 0 {
		return none
	}
	return SpreadOf(values).String()
}

// WholeText is [Text] in whole numbers.
func WholeText(values []float64) string {
	if len(values) == 0 {
		return none
	}
	s := SpreadOf(values)
	return fmt.Sprintf("%.0f (%.0f–%.0f)", s.Median, s.Low, s.High)
}

// Ratios divides each figure of a by the figure of b of the same round. It returns none if the
// numbers of rounds differ.
func Ratios(a, b []float64) []float64 {
	if len(a) != len(b) {
		return nil
	}
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i] / b[i]
	}
	return all
}

// Verdict returns whether a target is met, as text. Without values the calls have failed.
func Verdict(values []float64, met bool) string {
	switch {
	case len(values) == 0:
		return "not measured: calls failed"
	case met:
		return "met"
	}
	return "**missed**"
}

// Count returns a number with a noun, which gets an s unless the number is 1.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Thousands returns a whole number with commas between thousands.
func Thousands[T ~int | ~float64](n T) string {
	text := fmt.Sprintf("%.0f", float64(n))
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Mebibytes returns a number of bytes in MiB.
func Mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
