// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * The result of {@link Client#decryptData}.
 *
 * @param plaintext the authentic plaintext. Overwrite it after use.
 * @param deprecation the warning of a deprecated profile, or null
 */
public record DecryptDataResult(byte[] plaintext, Deprecation deprecation) {}
