// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * The result of a stream that has ended well.
 *
 * @param algorithm the algorithm of the stream, such as "aes256-gcm-hkdf-64kb"
 * @param deprecation the warning of a deprecated profile, or null
 */
public record StreamResult(String algorithm, Deprecation deprecation) {}
