// SPDX-License-Identifier: Apache-2.0

// Package accessexplain is the command "access explain" of crypto-broker and of gateway. Only the
// gateway can compile policies in Rego.
package accessexplain
