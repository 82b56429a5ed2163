// SPDX-License-Identifier: Apache-2.0

// Package kmipspeed measures how many operations a minute a KMIP key manager does for several
// clients, with reused connections and with a new connection for each operation.
package kmipspeed
