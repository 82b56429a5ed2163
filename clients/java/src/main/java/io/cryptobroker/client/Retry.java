// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * Tries until the outcome is not a transient failure, or until there is no time for another try.
 */
final class Retry {
  private static final long FIRST_WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
  private static final long MAX_WAIT_NANOS = TimeUnit.SECONDS.toNanos(1);

  private Retry() {}

  /** One try of a call. */
  interface Attempt<T> {
    T make() throws Refused;
  }

  static <T> T run(
      String operation,
      String profile,
      Duration budget,
      Ending ending,
      Transport transport,
      Attempt<T> attempt)
      throws Refused {
    long began = System.nanoTime();
    for (int tries = 1; ; tries++) {
      Failure failure;
      try {
        return attempt.make();
      } catch (Refused refused) {
        failure = refused.failure;
        if (!failure.isTransient()) {
          throw refused;
        }
      }
      long wait = jittered(tries);
      Duration took = Duration.ofNanos(System.nanoTime() - began);
      if (took.plusNanos(wait).compareTo(budget) > 0) {
        throw new Refused(failure.spent(tries, took.toMillis()));
      }
      ending.pause(operation, profile, wait, failure);
      if (failure.code() == Code.UNAVAILABLE) {
        transport.reconnect();
      }
    }
  }

  /**
   * Returns how long to wait after this many tries. It is a random time, so that many callers do
   * not try again at the same moment. The longest time doubles with each try, up to a second.
   */
  private static long jittered(int tries) {
    long longest = Math.min(MAX_WAIT_NANOS, FIRST_WAIT_NANOS << Math.min(tries - 1, 10));
    return ThreadLocalRandom.current().nextLong(longest + 1);
  }
}
