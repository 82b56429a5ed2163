// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.List;
import java.util.Objects;

/** A request for the data keys of several wrapped keys. */
public final class UnwrapBatchRequest extends Request<UnwrapBatchRequest> {
  final List<WrappedKey> keys;

  /**
   * Makes a request.
   *
   * @param keys 1 to 32 wrapped keys
   */
  public UnwrapBatchRequest(List<WrappedKey> keys) {
    this.keys = Objects.requireNonNull(keys, "keys");
  }
}
