// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A request to wrap a data key. */
public final class WrapKeyRequest extends Request<WrapKeyRequest> {
  final String keyId;
  final byte[] dataKey;
  byte[] context = new byte[0];

  /**
   * Makes a request.
   *
   * @param keyId the id of the wrapping key. The profile has to list it.
   * @param dataKey the key to wrap, 16 to 8192 bytes
   */
  public WrapKeyRequest(String keyId, byte[] dataKey) {
    this.keyId = Objects.requireNonNull(keyId, "keyId");
    this.dataKey = Objects.requireNonNull(dataKey, "dataKey");
  }

  /**
   * Sets a field of the request.
   *
   * @param context what the data key is bound to, at most 4 KiB. It is needed again to unwrap the
   *     key.
   * @return this request
   */
  public WrapKeyRequest context(byte[] context) {
    this.context = Objects.requireNonNull(context, "context");
    return this;
  }
}
