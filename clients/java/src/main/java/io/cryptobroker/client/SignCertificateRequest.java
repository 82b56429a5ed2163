// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.time.Instant;
import java.util.List;
import java.util.Objects;

/** A request for a certificate. */
public final class SignCertificateRequest extends Request<SignCertificateRequest> {
  final String csr;
  String caPrivateKey = "";
  String caCertificate = "";
  Instant notBefore;
  Instant notAfter;
  String subject = "";
  List<String> crlDistributionPoints = List.of();

  /**
   * Makes a request.
   *
   * @param csr the certificate request (PKCS #10) in PEM, at most 64 KiB
   */
  public SignCertificateRequest(String csr) {
    this.csr = Objects.requireNonNull(csr, "csr");
  }

  /**
   * Sets a field of the request.
   *
   * @param caPrivateKey the issuer's private key in PEM, at most 64 KiB. It is not set if the
   *     profile names a key of the broker, which is safer.
   * @return this request
   */
  public SignCertificateRequest caPrivateKey(String caPrivateKey) {
    this.caPrivateKey = Objects.requireNonNull(caPrivateKey, "caPrivateKey");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param caCertificate the issuer's certificate in PEM, at most 64 KiB. It may be missing if the
   *     profile names one key of the broker.
   * @return this request
   */
  public SignCertificateRequest caCertificate(String caCertificate) {
    this.caCertificate = Objects.requireNonNull(caCertificate, "caCertificate");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param notBefore when the certificate begins to be valid, cut to seconds. The default is the
   *     earliest time that profile and issuer allow.
   * @return this request
   */
  public SignCertificateRequest notBefore(Instant notBefore) {
    this.notBefore = Objects.requireNonNull(notBefore, "notBefore");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param notAfter when the certificate ends to be valid, cut to seconds. The default is the
   *     latest time that profile and issuer allow.
   * @return this request
   */
  public SignCertificateRequest notAfter(Instant notAfter) {
    this.notAfter = Objects.requireNonNull(notAfter, "notAfter");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param subject replaces the subject of the request for a certificate: text as in RFC 4514, at
   *     most 1 KiB, with the components in the order of the certificate
   * @return this request
   */
  public SignCertificateRequest subject(String subject) {
    this.subject = Objects.requireNonNull(subject, "subject");
    return this;
  }

  /**
   * Sets a field of the request.
   *
   * @param crlDistributionPoints at most 16 URLs of at most 2048 bytes each
   * @return this request
   */
  public SignCertificateRequest crlDistributionPoints(List<String> crlDistributionPoints) {
    this.crlDistributionPoints =
        Objects.requireNonNull(crlDistributionPoints, "crlDistributionPoints");
    return this;
  }
}
