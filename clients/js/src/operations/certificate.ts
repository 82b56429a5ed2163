// SPDX-License-Identifier: Apache-2.0

import {
  SignCertificateRequest as RequestMessage,
  SignCertificateResponse,
  SignOutputFormat,
} from "../messages/cryptobroker/v1/sign_certificate.js";
import { algorithmOf, cryptoService, type Described, nonEmpty, operation } from "../operation.js";

/** SignCertificateRequest is a request for a certificate. */
export interface SignCertificateRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** The certificate request (PKCS #10) in PEM, at most 64 KiB. */
  csr: string;
  /**
   * The issuer's private key in PEM, at most 64 KiB. It is absent if the profile names a key of the
   * broker, which is safer.
   */
  caPrivateKey?: string;
  /**
   * The issuer's certificate in PEM, at most 64 KiB. It may be absent if the profile names one key
   * of the broker.
   */
  caCertificate?: string;
  /**
   * When the certificate begins to be valid, cut to seconds. The default is the earliest time that
   * profile and issuer allow.
   */
  notBefore?: Date;
  /**
   * When the certificate ends to be valid, cut to seconds. The default is the latest time that
   * profile and issuer allow.
   */
  notAfter?: Date;
  /**
   * Replaces the subject of the request for a certificate. It is text as in RFC 4514, at most
   * 1 KiB, with the components in the order of the certificate.
   */
  subject?: string;
  /** At most 16 URLs of at most 2048 bytes each. */
  crlDistributionPoints?: readonly string[];
}

/** SignCertificateResult is a certificate. */
export interface SignCertificateResult extends Described {
  /** The certificate in DER. */
  certificate: Uint8Array;
  /** The certificate in PEM (RFC 7468). */
  pem: string;
  /** The signature algorithm of the profile, such as "ecdsa-with-SHA256". */
  algorithm: string;
}

export const signCertificate = operation<
  SignCertificateRequest,
  SignCertificateResult,
  RequestMessage,
  SignCertificateResponse
>({
  name: "SignCertificate",
  service: cryptoService,
  number: 4,
  fields: {
    csr: "text",
    caPrivateKey: "text?",
    caCertificate: "text?",
    notBefore: "time?",
    notAfter: "time?",
    subject: "text?",
    crlDistributionPoints: "texts?",
  },
  request: RequestMessage,
  reply: SignCertificateResponse,
  message: (r, head) => ({
    ...head,
    csr: r.csr,
    caPrivateKey: r.caPrivateKey,
    caCert: r.caCertificate,
    validNotBefore: seconds(r.notBefore),
    validNotAfter: seconds(r.notAfter),
    subject: r.subject === "" ? undefined : r.subject,
    crlDistributionPoints: [...(r.crlDistributionPoints ?? [])],
    outputFormat: SignOutputFormat.SIGN_OUTPUT_FORMAT_DER,
  }),
  result: (reply) => {
    const certificate = nonEmpty(reply.der, "certificate");
    return { certificate, pem: pem(certificate), algorithm: algorithmOf(reply) };
  },
});

function seconds(time: Date | undefined): number | undefined {
  return time && Math.floor(time.getTime() / 1000);
}

function pem(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}
