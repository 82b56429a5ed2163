// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * Headers and body of the reply. Headers that are empty do not belong to the version of the
 * protocol.
 *
 * @param kid the header X-Kid
 * @param encAlg the header X-Enc-Alg
 * @param iv the header X-IV
 * @param tag the header X-Tag
 * @param aad the header X-AAD
 * @param nonce the header X-Nonce
 * @param timestamp the header X-Timestamp
 * @param idempotencyKey the header X-Idempotency-Key
 * @param clientId the header X-ClientId
 * @param sequence the header X-Sequence
 * @param body the body
 * @param algorithm the version of the protocol, such as "session-v1"
 * @param deprecation the warning of a deprecated profile, or null
 */
public record SealReplyResult(
    String kid,
    String encAlg,
    String iv,
    String tag,
    String aad,
    String nonce,
    String timestamp,
    String idempotencyKey,
    String clientId,
    String sequence,
    byte[] body,
    String algorithm,
    Deprecation deprecation) {}
