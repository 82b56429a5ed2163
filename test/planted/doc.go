// SPDX-License-Identifier: Apache-2.0

// Package planted makes secrets that a test gives to programs, and finds them in what the programs
// write: as they are, in hexadecimal, in base64 and as lists of numbers.
package planted
