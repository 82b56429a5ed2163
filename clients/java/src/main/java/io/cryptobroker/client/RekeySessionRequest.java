// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A request of a native version for the next key of its session. */
public final class RekeySessionRequest extends Request<RekeySessionRequest> {
  final String method;
  final String path;
  final String kid;
  final String encAlg;
  final byte[] body;
  String timestamp = "";
  String sequence = "";

  /**
   * Makes a request.
   *
   * @param method the method of the HTTP request
   * @param path the path of the HTTP request, without a query
   * @param kid the header X-Kid
   * @param encAlg the header X-Enc-Alg
   * @param body the body, at most 1 MiB
   */
  public RekeySessionRequest(String method, String path, String kid, String encAlg, byte[] body) {
    this.method = Objects.requireNonNull(method, "method");
    this.path = Objects.requireNonNull(path, "path");
    this.kid = Objects.requireNonNull(kid, "kid");
    this.encAlg = Objects.requireNonNull(encAlg, "encAlg");
    this.body = Objects.requireNonNull(body, "body");
  }

  /**
   * Sets a field of the request.
   *
   * @param timestamp the header X-Timestamp of version 1 and of the native versions
   * @return this request
   */
  public RekeySessionRequest timestamp(String timestamp) {
    this.timestamp = Objects.requireNonNull(timestamp, "timestamp");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param sequence the header X-Sequence of the native versions
   * @return this request
   */
  public RekeySessionRequest sequence(String sequence) {
    this.sequence = Objects.requireNonNull(sequence, "sequence");
    return this;
  }
}
