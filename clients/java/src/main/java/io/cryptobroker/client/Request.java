// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import java.time.Duration;
import java.util.Objects;

/**
 * What all requests have. Setters return the request itself. A request is not safe for use by
 * several threads, and its arrays are not copied: do not change them during a call.
 *
 * @param <T> the type of the request
 */
public abstract class Request<T extends Request<T>> {
  String profile = "";
  Duration timeout;
  TraceContext traceContext;

  Request() {}

  @SuppressWarnings("unchecked")
  private T self() {
    return (T) this;
  }

  /**
   * Sets the profile. The default is the profile of the client.
   *
   * @param profile the name of the profile, at most 64 bytes
   * @return this request
   */
  public final T profile(String profile) {
    this.profile = Objects.requireNonNull(profile, "profile");
    return self();
  }

  /**
   * Sets the time of the call with all its tries. It replaces the value of the client.
   *
   * @param timeout a positive duration, or zero for no limit
   * @return this request
   * @throws IllegalArgumentException if it is negative
   */
  public final T timeout(Duration timeout) {
    this.timeout = Settings.notNegative("timeout", timeout);
    return self();
  }

  /**
   * Sets the trace that the call belongs to. It replaces what the client's function returns.
   *
   * @param traceContext the trace
   * @return this request
   */
  public final T traceContext(TraceContext traceContext) {
    this.traceContext = Objects.requireNonNull(traceContext, "traceContext");
    return self();
  }

  static ByteString bytes(byte[] value) {
    return UnsafeByteOperations.unsafeWrap(value);
  }
}
