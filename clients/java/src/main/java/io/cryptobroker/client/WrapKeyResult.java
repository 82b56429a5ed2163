// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * The result of {@link Client#wrapKey}.
 *
 * @param wrappedKey the wrapped data key, which is not secret
 * @param algorithm the algorithm of the profile, such as "aes-gcm"
 * @param deprecation the warning of a deprecated profile, or null
 */
public record WrapKeyResult(byte[] wrappedKey, String algorithm, Deprecation deprecation) {}
