// SPDX-License-Identifier: Apache-2.0

package contract

// DefaultSessionProfile is the profile of the session gateway's sessions if nobody names another
// one.
const DefaultSessionProfile = "Session"
