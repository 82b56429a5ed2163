// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/** The health of a broker. */
public enum Health {
  /** The broker does not say. */
  UNKNOWN,
  /** The broker serves. */
  SERVING,
  /** The broker has no profiles yet, or shuts down. */
  NOT_SERVING
}
