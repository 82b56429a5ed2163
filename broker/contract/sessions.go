// SPDX-License-Identifier: Apache-2.0

package contract

// DefaultSessionProfile is the profile of the session gateway's sessions if nobody names another
// one.
const DefaultSessionProfile = "Session"

// SessionPortName is the name of the session gateway's port in the broker's container.
const SessionPortName = "broker-session"

// SessionInitPath and SessionHealthPath are the paths that the session gateway serves itself.
const (
	SessionInitPath   = "/session/init"
	SessionHealthPath = "/health"
)
