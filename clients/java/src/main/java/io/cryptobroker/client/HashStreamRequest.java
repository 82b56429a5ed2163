// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/** A request for the digest of a stream. */
public final class HashStreamRequest extends Request<HashStreamRequest> {

  /** Makes a request. */
  public HashStreamRequest() {}
}
