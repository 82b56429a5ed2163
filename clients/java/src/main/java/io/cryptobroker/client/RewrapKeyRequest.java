// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A request to wrap a wrapped key again. */
public final class RewrapKeyRequest extends Request<RewrapKeyRequest> {
  final byte[] wrappedKey;
  byte[] context = new byte[0];
  String keyId = "";

  /**
   * Makes a request.
   *
   * @param wrappedKey the wrapped key, at most 16 KiB
   */
  public RewrapKeyRequest(byte[] wrappedKey) {
    this.wrappedKey = Objects.requireNonNull(wrappedKey, "wrappedKey");
  }

  /**
   * Sets a field of the request.
   *
   * @param context the context of the wrapped key. It is not set if the key has none.
   * @return this request
   */
  public RewrapKeyRequest context(byte[] context) {
    this.context = Objects.requireNonNull(context, "context");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param keyId the id of the new wrapping key. The default is the newest version of the same key.
   * @return this request
   */
  public RewrapKeyRequest keyId(String keyId) {
    this.keyId = Objects.requireNonNull(keyId, "keyId");
    return this;
  }
}
