// SPDX-License-Identifier: Apache-2.0

// Package accessexplain is the command "access explain" of crypto-broker and of gateway. The gateway alone has what compiles policies
// in Rego.
package accessexplain
