// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"net"
	"strconv"
)

// The broker's status port.
const (
	// StatusPortName is the name of the port in the broker's container.
	StatusPortName = "broker-status"

	// DefaultStatusPort is the number of the status port if a pod does not set another.
	DefaultStatusPort = 9470

	// MinStatusPort is the lowest status port. The broker does not have the privilege to
	// open a lower port.
	MinStatusPort = 1024

	// HealthPath, ReadyPath, MetricsPath, ProfilesPath and UsesPath are the paths that the
	// status port serves with HTTP.
	HealthPath   = "/healthz"
	ReadyPath    = "/readyz"
	MetricsPath  = "/metrics"
	ProfilesPath = "/profiles"
	UsesPath     = "/uses"
)

// StatusAddress returns the value of StatusAddressFlag that opens the port on all addresses of
// the pod.
func StatusAddress(port int32) string { return ":" + strconv.Itoa(int(port)) }

// StatusPort returns the status port that a broker with these arguments opens on all addresses
// of its pod. It returns 0 if the port is off, below MinStatusPort or not a number, or if the
// port is open on one address only.
func StatusPort(arguments []string) uint16 {
	address, _ := ArgumentOf(arguments, StatusAddressFlag)
	host, text, err := net.SplitHostPort(address)
	if err != nil || host != "" {
		return 0
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port < MinStatusPort {
		return 0
	}
	return uint16(port)
}
