// SPDX-License-Identifier: Apache-2.0

// Package limit bounds what callers may ask of a key access service: calls in a second for each caller and each tenant, and
// the calls that the service works on at one time. It refuses calls beyond the limits at once, with the time after which another
// attempt makes sense. So the accepted calls do not wait for them.
//
// The memory of the package is bounded. It does not grow with the number of callers, tenants or requests.
package limit
