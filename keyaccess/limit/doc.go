// SPDX-License-Identifier: Apache-2.0

// Package limit bounds what callers may ask of a key access service: calls in a second for each caller and each tenant, and
// the calls that the service works on at one time. What is too much is refused at once, with the time after which another
// attempt makes sense, so that the calls that are accepted are served in good time.
//
// The memory of the package is bounded. It does not grow with the number of callers, tenants or requests.
package limit
