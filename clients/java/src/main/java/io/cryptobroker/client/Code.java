// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/** The kind of error of a call, by its name in gRPC. */
public enum Code {
  /** The thread was interrupted, or the client was closed. */
  CANCELLED,
  /** The broker does not say what happened, or an input cannot be read, or an output written. */
  UNKNOWN,
  /** The request is not valid, or the broker does not have the profile. */
  INVALID_ARGUMENT,
  /** The call did not end within its time. */
  DEADLINE_EXCEEDED,
  /** The broker has no key with the id. */
  NOT_FOUND,
  /** Brokers do not send this code. */
  ALREADY_EXISTS,
  /** The profile does not allow the caller, or the key. */
  PERMISSION_DENIED,
  /** The broker has too much to do. The client tries again. */
  RESOURCE_EXHAUSTED,
  /** The profile does not offer the operation, or a key cannot be used. */
  FAILED_PRECONDITION,
  /** The call conflicted with another call. The client tries again. */
  ABORTED,
  /** Brokers do not send this code. */
  OUT_OF_RANGE,
  /** The version of the broker does not have the operation. */
  UNIMPLEMENTED,
  /** A defect of the broker or of this package. */
  INTERNAL,
  /** The broker, or a key manager that it uses, cannot be reached. The client tries again. */
  UNAVAILABLE,
  /** Brokers do not send this code. */
  DATA_LOSS,
  /** Brokers do not send this code. */
  UNAUTHENTICATED;

  /** Returns the code with a number in gRPC, and UNKNOWN for a number that gRPC does not have. */
  static Code of(int number) {
    return number >= 1 && number <= values().length ? values()[number - 1] : UNKNOWN;
  }

  boolean isTransient() {
    return this == UNAVAILABLE || this == RESOURCE_EXHAUSTED || this == ABORTED;
  }
}
