// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.HexFormat;

/**
 * A digest.
 *
 * @param digest the digest
 * @param algorithm the algorithm of the profile, such as "sha3-512"
 * @param deprecation the warning of a deprecated profile, or null
 */
public record HashDataResult(byte[] digest, String algorithm, Deprecation deprecation) {

  /**
   * Returns the digest in lower-case hexadecimal digits.
   *
   * @return hexadecimal digits
   */
  public String hex() {
    return HexFormat.of().formatHex(digest);
  }
}
