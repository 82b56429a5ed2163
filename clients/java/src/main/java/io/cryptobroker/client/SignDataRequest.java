// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A request for a signature. */
public final class SignDataRequest extends Request<SignDataRequest> {
  final Key key;
  final byte[] input;
  Key postQuantumKey;
  SignatureFormat format;

  /**
   * Makes a request.
   *
   * @param key the private key. For a hybrid it is the key of the classical algorithm.
   * @param input what to sign, at most 1 MiB
   */
  public SignDataRequest(Key key, byte[] input) {
    this.key = Objects.requireNonNull(key, "key");
    this.input = Objects.requireNonNull(input, "input");
  }

  /**
   * Sets a field of the request.
   *
   * @param postQuantumKey the second key of a hybrid
   * @return this request
   */
  public SignDataRequest postQuantumKey(Key postQuantumKey) {
    this.postQuantumKey = Objects.requireNonNull(postQuantumKey, "postQuantumKey");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param format the format of the signature. The default is the format of the profile, or else
   *     RAW.
   * @return this request
   */
  public SignDataRequest format(SignatureFormat format) {
    this.format = Objects.requireNonNull(format, "format");
    return this;
  }
}
