// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A request to encrypt a stream. */
public final class EncryptStreamRequest extends Request<EncryptStreamRequest> {
  final String keyId;
  byte[] context = new byte[0];

  /**
   * Makes a request.
   *
   * @param keyId the id of the wrapping key. The profile has to list it.
   */
  public EncryptStreamRequest(String keyId) {
    this.keyId = Objects.requireNonNull(keyId, "keyId");
  }

  /**
   * Sets a field of the request.
   *
   * @param context what the stream is bound to, at most 4 KiB. It is needed again to decrypt.
   * @return this request
   */
  public EncryptStreamRequest context(byte[] context) {
    this.context = Objects.requireNonNull(context, "context");
    return this;
  }
}
