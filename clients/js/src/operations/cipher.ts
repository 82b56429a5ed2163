// SPDX-License-Identifier: Apache-2.0

import type { Key } from "../key.js";
import {
  DecryptDataRequest as DecryptMessage,
  DecryptDataResponse,
  EncryptDataRequest as EncryptMessage,
  EncryptDataResponse,
} from "../messages/cryptobroker/v1/encrypt_data.js";
import {
  algorithmOf,
  cryptoService,
  type Described,
  nonEmpty,
  operation,
  present,
} from "../operation.js";

/** EncryptDataRequest is a request to encrypt data. */
export interface EncryptDataRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** The AES key. */
  key: Key;
  /** What to encrypt, at most 1 MiB. */
  plaintext: Uint8Array;
  /**
   * 12 bytes, which must never be used again with the same key. It is absent if the broker makes
   * the nonce: the profile has NonceStrategy "random".
   */
  nonce?: Uint8Array;
  /** Data that is authenticated but not encrypted, at most 64 KiB. */
  additionalData?: Uint8Array;
}

/**
 * EncryptDataResult is the result of `encryptData`. `decryptData` needs it together with the key
 * and the additional data. None of its fields is secret.
 */
export interface EncryptDataResult extends Described {
  /** The ciphertext, which is as long as the plaintext. */
  ciphertext: Uint8Array;
  /** The nonce that was used. */
  nonce: Uint8Array;
  /** The authentication tag. */
  tag: Uint8Array;
  /**
   * The id of the key, for `decryptData`; empty if the request brought the key. If its key manager
   * has versions of the key, it names the version, and decrypts after the key was rotated.
   */
  keyId: string;
  /** The algorithm of the profile, such as "aes-gcm". */
  algorithm: string;
}

export const encryptData = operation<
  EncryptDataRequest,
  EncryptDataResult,
  EncryptMessage,
  EncryptDataResponse
>({
  name: "EncryptData",
  service: cryptoService,
  number: 5,
  fields: { key: "key", plaintext: "bytes", nonce: "bytes?", additionalData: "bytes?" },
  request: EncryptMessage,
  reply: EncryptDataResponse,
  message: (r, head) => ({
    ...head,
    keySource: r.key,
    plaintext: r.plaintext,
    encryptMetadata: { nonce: r.nonce, aad: r.additionalData },
  }),
  result: (reply) => ({
    ciphertext: present(reply.ciphertext, "ciphertext"),
    nonce: nonEmpty(reply.cipherMetadata?.nonce, "nonce"),
    tag: nonEmpty(reply.cipherMetadata?.tag, "tag"),
    keyId: reply.cipherMetadata?.keyId ?? "",
    algorithm: algorithmOf(reply),
  }),
});

/** DecryptDataRequest is a request to decrypt what `encryptData` has encrypted. */
export interface DecryptDataRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** The AES key. */
  key: Key;
  /** The ciphertext of the result of `encryptData`, at most 1 MiB. */
  ciphertext: Uint8Array;
  /** The nonce of the result of `encryptData`. */
  nonce: Uint8Array;
  /** The tag of the result of `encryptData`. */
  tag: Uint8Array;
  /** The additional data of the request to encrypt. */
  additionalData?: Uint8Array;
}

/** DecryptDataResult is the result of `decryptData`. */
export interface DecryptDataResult extends Described {
  /** The authentic plaintext. */
  plaintext: Uint8Array;
}

export const decryptData = operation<
  DecryptDataRequest,
  DecryptDataResult,
  DecryptMessage,
  DecryptDataResponse
>({
  name: "DecryptData",
  service: cryptoService,
  number: 6,
  fields: {
    key: "key",
    ciphertext: "bytes",
    nonce: "bytes",
    tag: "bytes",
    additionalData: "bytes?",
  },
  request: DecryptMessage,
  reply: DecryptDataResponse,
  message: (r, head) => ({
    ...head,
    keySource: r.key,
    ciphertext: r.ciphertext,
    decryptMetadata: {
      nonce: r.nonce,
      aad: r.additionalData,
      tag: r.tag.length === 0 ? undefined : r.tag,
    },
  }),
  result: (reply) => ({ plaintext: present(reply.plaintext, "plaintext") }),
});
