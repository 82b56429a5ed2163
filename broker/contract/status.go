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

	// DefaultStatusPort is the status port where nobody says otherwise.
	DefaultStatusPort = 9470

	// MinStatusPort is the lowest status port: the broker runs without the right
	// to open a lower one, and the well-known ports below belong to other services.
	MinStatusPort = 1024

	// HealthPath, ReadyPath, MetricsPath and ProfilesPath are served there by HTTP.
	HealthPath   = "/healthz"
	ReadyPath    = "/readyz"
	MetricsPath  = "/metrics"
	ProfilesPath = "/profiles"
)

// StatusAddress is the value of StatusAddressFlag that opens the port on all
// addresses of the pod.
func StatusAddress(port int32) string { return ":" + strconv.Itoa(int(port)) }

// StatusPort returns the status port that a broker with these arguments opens on
// all addresses of its pod. It is 0 where the port is off, is below MinStatusPort,
// cannot be read, or is bound to one address, so that nobody else can ask it.
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
