// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * The result of {@link Client#openRequest}.
 *
 * @param plaintext the authentic plaintext
 * @param sessionId the id of the session
 * @param path the path in its normal form: the one to serve
 * @param clientPath the path as the client has authenticated it, for {@link Client#sealReply}
 * @param sequence the sequence of a request of a native version, for {@link Client#sealReply}
 * @param clientId the client id of a session of version 2
 * @param algorithm the version of the protocol, such as "session-v1"
 * @param deprecation the warning of a deprecated profile, or null
 */
public record OpenRequestResult(
    byte[] plaintext,
    String sessionId,
    String path,
    String clientPath,
    String sequence,
    String clientId,
    String algorithm,
    Deprecation deprecation) {}
