// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A request to verify a signature. */
public final class VerifyDataRequest extends Request<VerifyDataRequest> {
  final Key key;
  final byte[] input;
  final byte[] signature;
  Key postQuantumKey;
  SignatureFormat format;

  /**
   * Makes a request.
   *
   * @param key a public key, a certificate or a private key. For a hybrid it is the key of the
   *     classical algorithm.
   * @param input what was signed, at most 1 MiB
   * @param signature the signature, at most 64 KiB
   */
  public VerifyDataRequest(Key key, byte[] input, byte[] signature) {
    this.key = Objects.requireNonNull(key, "key");
    this.input = Objects.requireNonNull(input, "input");
    this.signature = Objects.requireNonNull(signature, "signature");
  }

  /**
   * Sets a field of the request.
   *
   * @param postQuantumKey the second key of a hybrid
   * @return this request
   */
  public VerifyDataRequest postQuantumKey(Key postQuantumKey) {
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
  public VerifyDataRequest format(SignatureFormat format) {
    this.format = Objects.requireNonNull(format, "format");
    return this;
  }
}
