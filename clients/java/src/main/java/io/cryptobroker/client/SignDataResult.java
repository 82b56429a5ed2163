// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * A signature.
 *
 * @param signature the signature in the format of the request
 * @param algorithm the algorithm of the profile, such as "ed25519"
 * @param deprecation the warning of a deprecated profile, or null
 */
public record SignDataResult(byte[] signature, String algorithm, Deprecation deprecation) {}
