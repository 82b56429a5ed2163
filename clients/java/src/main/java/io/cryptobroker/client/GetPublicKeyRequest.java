// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A request for the public key of a key pair. */
public final class GetPublicKeyRequest extends Request<GetPublicKeyRequest> {
  final String keyId;

  /**
   * Makes a request.
   *
   * @param keyId the id of the key pair. The profile has to list it.
   */
  public GetPublicKeyRequest(String keyId) {
    this.keyId = Objects.requireNonNull(keyId, "keyId");
  }
}
