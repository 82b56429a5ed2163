// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** An encrypted request of a client, with the texts that the client sent. */
public final class OpenRequestRequest extends Request<OpenRequestRequest> {
  final String method;
  final String path;
  final String kid;
  final String encAlg;
  final byte[] body;
  String timestamp = "";
  String sequence = "";
  String iv = "";
  String tag = "";
  String aad = "";
  String nonce = "";
  String idempotencyKey = "";
  String clientId = "";

  /**
   * Makes a request.
   *
   * @param method the method of the HTTP request
   * @param path the path of the HTTP request, without a query
   * @param kid the header X-Kid
   * @param encAlg the header X-Enc-Alg
   * @param body the body, at most 1 MiB
   */
  public OpenRequestRequest(String method, String path, String kid, String encAlg, byte[] body) {
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
  public OpenRequestRequest timestamp(String timestamp) {
    this.timestamp = Objects.requireNonNull(timestamp, "timestamp");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param sequence the header X-Sequence of the native versions
   * @return this request
   */
  public OpenRequestRequest sequence(String sequence) {
    this.sequence = Objects.requireNonNull(sequence, "sequence");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param iv the header X-IV of version 1
   * @return this request
   */
  public OpenRequestRequest iv(String iv) {
    this.iv = Objects.requireNonNull(iv, "iv");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param tag the header X-Tag of version 1
   * @return this request
   */
  public OpenRequestRequest tag(String tag) {
    this.tag = Objects.requireNonNull(tag, "tag");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param aad the header X-AAD of version 1
   * @return this request
   */
  public OpenRequestRequest aad(String aad) {
    this.aad = Objects.requireNonNull(aad, "aad");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param nonce the header X-Nonce of version 1
   * @return this request
   */
  public OpenRequestRequest nonce(String nonce) {
    this.nonce = Objects.requireNonNull(nonce, "nonce");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param idempotencyKey the header X-Idempotency-Key of version 2
   * @return this request
   */
  public OpenRequestRequest idempotencyKey(String idempotencyKey) {
    this.idempotencyKey = Objects.requireNonNull(idempotencyKey, "idempotencyKey");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param clientId the header X-ClientId of version 2
   * @return this request
   */
  public OpenRequestRequest clientId(String clientId) {
    this.clientId = Objects.requireNonNull(clientId, "clientId");
    return this;
  }
}
