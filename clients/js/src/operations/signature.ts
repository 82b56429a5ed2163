// SPDX-License-Identifier: Apache-2.0

import { type Key, signKeySource } from "../key.js";
import {
  SignatureFormat as FormatMessage,
  SignDataRequest as SignMessage,
  SignDataResponse,
  VerifyDataRequest as VerifyMessage,
  VerifyDataResponse,
} from "../messages/cryptobroker/v1/sign_data.js";
import { algorithmOf, cryptoService, type Described, nonEmpty, operation } from "../operation.js";

/**
 * SignatureFormat is the encoding of a signature.
 *
 * - `raw`: r and s joined for ECDSA, and the octets of the algorithm otherwise.
 * - `der`: an ECDSA-Sig-Value (RFC 3279) for ECDSA, and the octets of the algorithm otherwise.
 * - `pem`: as `der`, in PEM with the label SIGNATURE.
 * - `cms`: a detached SignedData (RFC 5652).
 */
export type SignatureFormat = "raw" | "der" | "pem" | "cms";

const formats: Record<SignatureFormat, FormatMessage> = {
  raw: FormatMessage.SIGNATURE_FORMAT_RAW,
  der: FormatMessage.SIGNATURE_FORMAT_DER,
  pem: FormatMessage.SIGNATURE_FORMAT_PEM,
  cms: FormatMessage.SIGNATURE_FORMAT_CMS,
};

/** SignDataRequest is a request for a signature. */
export interface SignDataRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** The private key. For a hybrid it is the key of the classical algorithm. */
  key: Key;
  /** The second key of a hybrid. */
  postQuantumKey?: Key;
  /** What to sign, at most 1 MiB. */
  input: Uint8Array;
  /** The format of the signature. The default is the format of the profile, or else "raw". */
  format?: SignatureFormat;
}

/** SignDataResult is a signature. */
export interface SignDataResult extends Described {
  /** The signature in the format of the request. */
  signature: Uint8Array;
  /** The algorithm of the profile, such as "ed25519". */
  algorithm: string;
}

export const signData = operation<SignDataRequest, SignDataResult, SignMessage, SignDataResponse>({
  name: "SignData",
  service: cryptoService,
  number: 7,
  fields: { key: "key", postQuantumKey: "key?", input: "bytes", format: "format?" },
  request: SignMessage,
  reply: SignDataResponse,
  message: (r, head) => ({
    ...head,
    keySource: signKeySource(r.key, r.postQuantumKey),
    input: r.input,
    signatureFormat: r.format && formats[r.format],
  }),
  result: (reply) => ({
    signature: nonEmpty(reply.signature, "signature"),
    algorithm: algorithmOf(reply),
  }),
});

/** VerifyDataRequest is a request to verify a signature. */
export interface VerifyDataRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /**
   * A public key, a certificate or a private key. For a hybrid it is the key of the classical
   * algorithm.
   */
  key: Key;
  /** The second key of a hybrid. */
  postQuantumKey?: Key;
  /** What was signed, at most 1 MiB. */
  input: Uint8Array;
  /** The signature, at most 64 KiB. */
  signature: Uint8Array;
  /** The format of the signature. The default is the format of the profile, or else "raw". */
  format?: SignatureFormat;
}

/** VerifyDataResult says whether a signature is valid. */
export interface VerifyDataResult extends Described {
  /** Whether the key has made the signature of the input. */
  valid: boolean;
}

export const verifyData = operation<
  VerifyDataRequest,
  VerifyDataResult,
  VerifyMessage,
  VerifyDataResponse
>({
  name: "VerifyData",
  service: cryptoService,
  number: 8,
  fields: {
    key: "key",
    postQuantumKey: "key?",
    input: "bytes",
    signature: "bytes",
    format: "format?",
  },
  request: VerifyMessage,
  reply: VerifyDataResponse,
  message: (r, head) => ({
    ...head,
    keySource: signKeySource(r.key, r.postQuantumKey),
    input: r.input,
    signature: r.signature,
    signatureFormat: r.format && formats[r.format],
  }),
  result: (reply) => ({ valid: reply.valid ?? false }),
});
