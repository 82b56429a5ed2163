// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A reply to a client of the application. */
public final class SealReplyRequest extends Request<SealReplyRequest> {
  final String sessionId;
  final String clientPath;
  final byte[] plaintext;
  String sequence = "";

  /**
   * Makes a request.
   *
   * @param sessionId the session of the result of {@link Client#openRequest}
   * @param clientPath the client path of the result of {@link Client#openRequest}
   * @param plaintext the body of the reply, at most 1 MiB
   */
  public SealReplyRequest(String sessionId, String clientPath, byte[] plaintext) {
    this.sessionId = Objects.requireNonNull(sessionId, "sessionId");
    this.clientPath = Objects.requireNonNull(clientPath, "clientPath");
    this.plaintext = Objects.requireNonNull(plaintext, "plaintext");
  }

  /**
   * Sets a field of the request.
   *
   * @param sequence the sequence of the result of {@link Client#openRequest}
   * @return this request
   */
  public SealReplyRequest sequence(String sequence) {
    this.sequence = Objects.requireNonNull(sequence, "sequence");
    return this;
  }
}
