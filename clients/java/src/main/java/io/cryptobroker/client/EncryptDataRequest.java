// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A request to encrypt data. */
public final class EncryptDataRequest extends Request<EncryptDataRequest> {
  final Key key;
  final byte[] plaintext;
  byte[] nonce = new byte[0];
  byte[] additionalData = new byte[0];

  /**
   * Makes a request.
   *
   * @param key the AES key
   * @param plaintext what to encrypt, at most 1 MiB
   */
  public EncryptDataRequest(Key key, byte[] plaintext) {
    this.key = Objects.requireNonNull(key, "key");
    this.plaintext = Objects.requireNonNull(plaintext, "plaintext");
  }

  /**
   * Sets a field of the request.
   *
   * @param nonce 12 bytes, which must never be used again with the same key. It is not set if the
   *     broker makes the nonce: the profile has NonceStrategy "random".
   * @return this request
   */
  public EncryptDataRequest nonce(byte[] nonce) {
    this.nonce = Objects.requireNonNull(nonce, "nonce");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param additionalData data that is authenticated but not encrypted, at most 64 KiB
   * @return this request
   */
  public EncryptDataRequest additionalData(byte[] additionalData) {
    this.additionalData = Objects.requireNonNull(additionalData, "additionalData");
    return this;
  }
}
