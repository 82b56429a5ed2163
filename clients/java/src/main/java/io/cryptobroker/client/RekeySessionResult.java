// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * The result of {@link Client#rekeySession}. {@link Client#sealReply} makes the reply.
 *
 * @param sessionId the id of the session
 * @param path the path in its normal form: the one to serve
 * @param clientPath the path as the client has authenticated it, for {@link Client#sealReply}
 * @param sequence the sequence of a request of a native version, for {@link Client#sealReply}
 * @param algorithm the version of the protocol, such as "session-v1"
 * @param deprecation the warning of a deprecated profile, or null
 */
public record RekeySessionResult(
    String sessionId,
    String path,
    String clientPath,
    String sequence,
    String algorithm,
    Deprecation deprecation) {}
