// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * The result of {@link Client#unwrapKey}.
 *
 * @param dataKey the authentic data key. Overwrite it after use.
 * @param algorithm the algorithm of the profile, such as "aes-gcm"
 * @param deprecation the warning of a deprecated profile, or null
 */
public record UnwrapKeyResult(byte[] dataKey, String algorithm, Deprecation deprecation) {}
