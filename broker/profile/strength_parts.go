// SPDX-License-Identifier: Apache-2.0

package profile

// DigestStrength is the resistance to collisions of a digest, by its name in any
// case; 0 bits for a name that is none.
func DigestStrength(name string) Strength { return hashStrength(name) }

// KeyStrength is that of keys of so many bits or more; algorithm is as
// KeyConstraints name it. An algorithm that is not known has 0 bits.
func KeyStrength(algorithm string, bits int) Strength { return keyStrength(algorithm, bits) }
