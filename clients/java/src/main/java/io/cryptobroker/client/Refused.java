// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/** A failure while it is thrown inside this package. */
final class Refused extends Exception {
  private static final long serialVersionUID = 1L;

  final transient Failure failure;

  Refused(Failure failure) {
    super(failure.reason(), failure.cause(), false, false);
    this.failure = failure;
  }
}
