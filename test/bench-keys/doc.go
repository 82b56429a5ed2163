// SPDX-License-Identifier: Apache-2.0

// Package benchkeys measures what keys in key managers cost, and counts at the key managers how
// often they are asked. "make bench-keys" runs it.
package benchkeys
