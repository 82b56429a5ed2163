// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.Objects;

/** A request for a digest. */
public final class HashDataRequest extends Request<HashDataRequest> {
  final byte[] input;

  /**
   * Makes a request.
   *
   * @param input what to hash, at most 1 MiB. {@link Client#hashStream} hashes larger inputs.
   */
  public HashDataRequest(byte[] input) {
    this.input = Objects.requireNonNull(input, "input");
  }
}
