// SPDX-License-Identifier: Apache-2.0

// Package kmipspeed measures how many operations a minute a KMIP key manager does for
// several clients, with connections that are used again and with a connection for each
// operation.
package kmipspeed
