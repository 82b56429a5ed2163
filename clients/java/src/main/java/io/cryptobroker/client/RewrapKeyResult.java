// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * The result of {@link Client#rewrapKey}.
 *
 * @param wrappedKey the wrapped key for the same data key. It has the context of the request.
 * @param unchanged whether the wrapped key is the key of the request, because a new one would have
 *     the same key, version and algorithm
 * @param algorithm the algorithm of the profile, such as "aes-gcm"
 * @param deprecation the warning of a deprecated profile, or null
 */
public record RewrapKeyResult(
    byte[] wrappedKey, boolean unchanged, String algorithm, Deprecation deprecation) {}
