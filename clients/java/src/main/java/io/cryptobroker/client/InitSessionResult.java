// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * The fields of the reply to the client of the application.
 *
 * @param sessionId the id of the session
 * @param serverPublicKey the public key of the broker in base64
 * @param encAlg the encryption of the session
 * @param expiresInSeconds the lifetime of the session in seconds
 * @param signature the signature of a native version in base64, else empty
 * @param signatureAlgorithm the algorithm of the signature, such as "ecdsa-with-sha-256", else
 *     empty
 * @param algorithm the version of the protocol, such as "session-v1"
 * @param deprecation the warning of a deprecated profile, or null
 */
public record InitSessionResult(
    String sessionId,
    String serverPublicKey,
    String encAlg,
    int expiresInSeconds,
    String signature,
    String signatureAlgorithm,
    String algorithm,
    Deprecation deprecation) {}
