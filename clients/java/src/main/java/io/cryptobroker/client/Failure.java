// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/** Why a try failed. A final failure is not tried again, whatever its code is. */
record Failure(
    Code code,
    String reason,
    Throwable cause,
    boolean retryBudgetSpent,
    boolean clientClosed,
    boolean isFinal) {

  static Failure of(Code code, String reason) {
    return new Failure(code, reason, null, false, false, false);
  }

  static Failure of(Code code, String reason, Throwable cause) {
    return new Failure(code, reason, cause, false, false, true);
  }

  static Failure closed(String reason) {
    return new Failure(Code.CANCELLED, reason, null, false, true, true);
  }

  boolean isTransient() {
    return !isFinal && code.isTransient();
  }

  /** Returns the failure of a stream that cannot be made again. */
  Failure partial() {
    return isTransient()
        ? new Failure(
            code,
            reason + "; a part of the data was processed already",
            cause,
            false,
            clientClosed,
            true)
        : this;
  }

  Failure spent(int tries, long tookMillis) {
    String times = tries == 1 ? "1 try" : tries + " tries";
    String end = " (given up after " + tookMillis + " ms in " + times + ")";
    return new Failure(code, reason + end, cause, true, clientClosed, true);
  }

  /** Returns a sentence with operation and profile before it, as a broker does. */
  static String said(String operation, String profile, String sentence) {
    return profile.isEmpty()
        ? operation + ": " + sentence
        : operation + " with profile \"" + profile + "\": " + sentence;
  }
}
