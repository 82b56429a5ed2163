// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/** The encoding of a signature. */
public enum SignatureFormat {
  /** r and s joined for ECDSA, and the octets of the algorithm otherwise. */
  RAW,
  /** An ECDSA-Sig-Value (RFC 3279) for ECDSA, and the octets of the algorithm otherwise. */
  DER,
  /** As DER, in PEM with the label SIGNATURE. */
  PEM,
  /** A detached SignedData (RFC 5652). */
  CMS;

  /** Returns the number in the message, which is 0 for no format. */
  static int number(SignatureFormat format) {
    return format == null ? 0 : format.ordinal() + 1;
  }
}
