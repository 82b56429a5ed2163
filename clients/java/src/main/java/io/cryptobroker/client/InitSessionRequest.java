// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/**
 * A request of a client of the application for an encrypted session, with the texts that the client
 * sent.
 */
public final class InitSessionRequest extends Request<InitSessionRequest> {
  final String keyAgreement;
  final String clientPublicKey;
  int ttlSeconds;
  String nonce = "";
  String timestamp = "";
  String clientId = "";

  /**
   * Makes a request.
   *
   * @param keyAgreement the field keyAgreement of the body
   * @param clientPublicKey the field clientPublicKey of the body
   */
  public InitSessionRequest(String keyAgreement, String clientPublicKey) {
    this.keyAgreement = Objects.requireNonNull(keyAgreement, "keyAgreement");
    this.clientPublicKey = Objects.requireNonNull(clientPublicKey, "clientPublicKey");
  }

  /**
   * Sets a field of the request.
   *
   * @param ttlSeconds the field ttlSec of the body: the lifetime in seconds that the client asks
   *     for
   * @return this request
   */
  public InitSessionRequest ttlSeconds(int ttlSeconds) {
    this.ttlSeconds = ttlSeconds;
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param nonce the header X-Nonce, which the native versions do not have
   * @return this request
   */
  public InitSessionRequest nonce(String nonce) {
    this.nonce = Objects.requireNonNull(nonce, "nonce");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param timestamp the header X-Timestamp, which the native versions do not have
   * @return this request
   */
  public InitSessionRequest timestamp(String timestamp) {
    this.timestamp = Objects.requireNonNull(timestamp, "timestamp");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param clientId the header X-ClientId of version 2 of the protocol
   * @return this request
   */
  public InitSessionRequest clientId(String clientId) {
    this.clientId = Objects.requireNonNull(clientId, "clientId");
    return this;
  }
}
