// SPDX-License-Identifier: Apache-2.0

// Package cache keeps data keys that a key manager has unwrapped, for at most a minute, and has
// identical wrapped keys unwrapped once.
//
// Whoever uses the cache authorises the caller before each look. The keys are in locked memory
// that core dumps do not have, where the system allows that. They are overwritten when their time
// is over, when there is no room, and when they are forgotten.
package cache
