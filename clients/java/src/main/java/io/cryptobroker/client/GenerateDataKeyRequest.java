// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A request for a new data key. */
public final class GenerateDataKeyRequest extends Request<GenerateDataKeyRequest> {
  final String keyId;
  byte[] context = new byte[0];
  boolean withoutDataKey;

  /**
   * Makes a request.
   *
   * @param keyId the id of the wrapping key. The profile has to list it.
   */
  public GenerateDataKeyRequest(String keyId) {
    this.keyId = Objects.requireNonNull(keyId, "keyId");
  }

  /**
   * Sets a field of the request.
   *
   * @param context what the data key is bound to, at most 4 KiB. It is needed again to unwrap the
   *     key.
   * @return this request
   */
  public GenerateDataKeyRequest context(byte[] context) {
    this.context = Objects.requireNonNull(context, "context");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param withoutDataKey whether only the wrapped key is wanted
   * @return this request
   */
  public GenerateDataKeyRequest withoutDataKey(boolean withoutDataKey) {
    this.withoutDataKey = withoutDataKey;
    return this;
  }
}
