// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A request for the data key of a wrapped key. */
public final class UnwrapKeyRequest extends Request<UnwrapKeyRequest> {
  final byte[] wrappedKey;
  byte[] context = new byte[0];

  /**
   * Makes a request.
   *
   * @param wrappedKey the wrapped key, at most 16 KiB
   */
  public UnwrapKeyRequest(byte[] wrappedKey) {
    this.wrappedKey = Objects.requireNonNull(wrappedKey, "wrappedKey");
  }

  /**
   * Sets a field of the request.
   *
   * @param context the context of the wrapped key. It is not set if the key has none.
   * @return this request
   */
  public UnwrapKeyRequest context(byte[] context) {
    this.context = Objects.requireNonNull(context, "context");
    return this;
  }
}
