// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A request to end a session. */
public final class CloseSessionRequest extends Request<CloseSessionRequest> {
  final String sessionId;

  /**
   * Makes a request.
   *
   * @param sessionId the id of the session
   */
  public CloseSessionRequest(String sessionId) {
    this.sessionId = Objects.requireNonNull(sessionId, "sessionId");
  }
}
