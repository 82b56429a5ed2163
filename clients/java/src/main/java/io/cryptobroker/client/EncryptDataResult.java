// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * The result of {@link Client#encryptData}. None of its fields is secret.
 *
 * @param ciphertext the ciphertext, which is as long as the plaintext
 * @param nonce the nonce that was used
 * @param tag the authentication tag
 * @param keyId the id of the key, with its version if it has one; empty if the request brought the
 *     key
 * @param algorithm the algorithm of the profile, such as "aes-gcm"
 * @param deprecation the warning of a deprecated profile, or null
 */
public record EncryptDataResult(
    byte[] ciphertext,
    byte[] nonce,
    byte[] tag,
    String keyId,
    String algorithm,
    Deprecation deprecation) {}
