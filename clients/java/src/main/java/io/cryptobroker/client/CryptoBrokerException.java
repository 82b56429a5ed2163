// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/** The error of every call. It quotes no secrets. */
public final class CryptoBrokerException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** The kind of error. */
  private final Code code;

  /** The name of the operation. */
  private final String operation;

  /** The name of the profile. */
  private final String profile;

  /** A sentence. */
  private final String reason;

  /** Whether the client gave up. */
  private final boolean retryBudgetSpent;

  /** Whether the client was closed. */
  private final boolean clientClosed;

  CryptoBrokerException(String operation, String profile, Failure failure) {
    super("crypto broker: " + failure.code() + ": " + failure.reason(), failure.cause());
    this.code = failure.code();
    this.operation = operation;
    this.profile = profile;
    this.reason = failure.reason();
    this.retryBudgetSpent = failure.retryBudgetSpent();
    this.clientClosed = failure.clientClosed();
  }

  /**
   * Returns the kind of error.
   *
   * @return the kind of error
   */
  public Code code() {
    return code;
  }

  /**
   * Returns the name of the operation, such as "HashData".
   *
   * @return the name of the operation
   */
  public String operation() {
    return operation;
  }

  /**
   * Returns the name of the profile in the request. It is empty if the operation has no profile.
   *
   * @return the name of the profile
   */
  public String profile() {
    return profile;
  }

  /**
   * Returns a sentence that says what was found and what was expected.
   *
   * @return a sentence
   */
  public String reason() {
    return reason;
  }

  /**
   * Reports whether the last try failed with a code after which the client tries again, but no time
   * was left. The code is the code of the last try.
   *
   * @return whether the client gave up
   */
  public boolean retryBudgetSpent() {
    return retryBudgetSpent;
  }

  /**
   * Reports whether the call failed because the client was closed.
   *
   * @return whether the client was closed
   */
  public boolean clientClosed() {
    return clientClosed;
  }
}
