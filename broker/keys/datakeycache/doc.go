// SPDX-License-Identifier: Apache-2.0

// Package datakeycache keeps data keys that a key manager has unwrapped, for at most a minute, and has
// identical wrapped keys unwrapped once.
//
// The user of the cache authorises the caller before each lookup. The keys are in locked memory,
// which is not part of core dumps where the system allows that. A key is overwritten when it
// expires, when the cache needs its room, and when it is forgotten.
package datakeycache
