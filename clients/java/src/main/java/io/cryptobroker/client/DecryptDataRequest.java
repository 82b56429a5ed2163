// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A request to decrypt what {@link Client#encryptData} has encrypted. */
public final class DecryptDataRequest extends Request<DecryptDataRequest> {
  final Key key;
  final byte[] ciphertext;
  final byte[] nonce;
  final byte[] tag;
  byte[] additionalData = new byte[0];

  /**
   * Makes a request.
   *
   * @param key the AES key
   * @param ciphertext the ciphertext, at most 1 MiB
   * @param nonce the nonce of the encryption
   * @param tag the tag of the encryption
   */
  public DecryptDataRequest(Key key, byte[] ciphertext, byte[] nonce, byte[] tag) {
    this.key = Objects.requireNonNull(key, "key");
    this.ciphertext = Objects.requireNonNull(ciphertext, "ciphertext");
    this.nonce = Objects.requireNonNull(nonce, "nonce");
    this.tag = Objects.requireNonNull(tag, "tag");
  }

  /**
   * Sets a field of the request.
   *
   * @param additionalData the additional data of the encryption
   * @return this request
   */
  public DecryptDataRequest additionalData(byte[] additionalData) {
    this.additionalData = Objects.requireNonNull(additionalData, "additionalData");
    return this;
  }
}
