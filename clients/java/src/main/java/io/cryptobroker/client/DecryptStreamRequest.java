// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A request to decrypt a stream. */
public final class DecryptStreamRequest extends Request<DecryptStreamRequest> {
  byte[] context = new byte[0];

  /** Makes a request. */
  public DecryptStreamRequest() {}

  /**
   * Sets a field of the request.
   *
   * @param context the context of the stream. It is not set if the stream has none.
   * @return this request
   */
  public DecryptStreamRequest context(byte[] context) {
    this.context = Objects.requireNonNull(context, "context");
    return this;
  }
}
