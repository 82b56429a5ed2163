// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * The result of {@link Client#generateDataKey}.
 *
 * @param dataKey the data key, of the size that the profile has, or null without data key.
 *     Overwrite it after use.
 * @param wrappedKey the wrapped data key, which is not secret
 * @param algorithm the algorithm of the profile, such as "aes-gcm"
 * @param deprecation the warning of a deprecated profile, or null
 */
public record GenerateDataKeyResult(
    byte[] dataKey, byte[] wrappedKey, String algorithm, Deprecation deprecation) {}
