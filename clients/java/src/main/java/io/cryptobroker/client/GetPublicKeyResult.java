// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * A public key.
 *
 * @param der the SubjectPublicKeyInfo in DER (RFC 5280, section 4.1.2.7)
 * @param pem the same in PEM
 * @param version the version of the key, empty if the key has no versions
 * @param deprecation the warning of a deprecated profile, or null
 */
public record GetPublicKeyResult(byte[] der, String pem, String version, Deprecation deprecation) {}
