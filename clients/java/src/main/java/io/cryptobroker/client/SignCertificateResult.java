// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.nio.charset.StandardCharsets;
import java.util.Base64;

/**
 * A certificate.
 *
 * @param certificate the certificate in DER
 * @param algorithm the signature algorithm of the profile, such as "ecdsa-with-SHA256"
 * @param deprecation the warning of a deprecated profile, or null
 */
public record SignCertificateResult(byte[] certificate, String algorithm, Deprecation deprecation) {

  /**
   * Returns the certificate in PEM (RFC 7468).
   *
   * @return text with the label CERTIFICATE
   */
  public String pem() {
    byte[] newline = "\n".getBytes(StandardCharsets.US_ASCII);
    String text = Base64.getMimeEncoder(64, newline).encodeToString(certificate);
    return "-----BEGIN CERTIFICATE-----\n" + text + "\n-----END CERTIFICATE-----\n";
  }
}
