// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.time.Duration;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** The values of the options of a client. */
record Settings(
    String socket,
    String profile,
    Duration retryBudget,
    Duration timeout,
    boolean exchange,
    Supplier<TraceContext> traceContext,
    Consumer<Deprecation> onDeprecation) {

  static Duration notNegative(String name, Duration value) {
    if (value.isNegative()) {
      throw new IllegalArgumentException(
          name + " is " + value + ", expected zero or a positive duration");
    }
    return value;
  }
}
