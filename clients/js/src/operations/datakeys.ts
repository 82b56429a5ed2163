// SPDX-License-Identifier: Apache-2.0

import { codeOf, CryptoBrokerError } from "../errors.js";
import {
  GenerateDataKeyRequest as GenerateMessage,
  GenerateDataKeyResponse,
  GetPublicKeyRequest as GetPublicKeyMessage,
  GetPublicKeyResponse,
  RewrapKeyRequest as RewrapMessage,
  RewrapKeyResponse,
  UnwrapBatchRequest as UnwrapBatchMessage,
  UnwrapBatchResponse,
  UnwrapKeyRequest as UnwrapMessage,
  UnwrapKeyResponse,
  type UnwrapResult,
  WrapKeyRequest as WrapMessage,
  WrapKeyResponse,
} from "../messages/cryptobroker/v1/data_keys.js";
import { algorithmOf, cryptoService, type Described, nonEmpty, operation } from "../operation.js";

/** GenerateDataKeyRequest is a request for a new data key. */
export interface GenerateDataKeyRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** The id of the wrapping key. The profile has to list it. */
  keyId: string;
  /** What the data key is bound to, at most 4 KiB. It is needed again to unwrap the key. */
  context?: Uint8Array;
  /** Whether only the wrapped key is wanted. */
  withoutDataKey?: boolean;
}

/** GenerateDataKeyResult is the result of `generateDataKey`. */
export interface GenerateDataKeyResult extends Described {
  /**
   * The data key, of the size that the profile has. It is undefined with `withoutDataKey`.
   * Overwrite it after use.
   */
  dataKey: Uint8Array | undefined;
  /** The wrapped data key, which is not secret. */
  wrappedKey: Uint8Array;
  /** The wrapping algorithm, such as "aes-gcm". */
  algorithm: string;
}

export const generateDataKey = operation<
  GenerateDataKeyRequest,
  GenerateDataKeyResult,
  GenerateMessage,
  GenerateDataKeyResponse
>({
  name: "GenerateDataKey",
  service: cryptoService,
  number: 9,
  fields: { keyId: "text", context: "bytes?", withoutDataKey: "flag?" },
  request: GenerateMessage,
  reply: GenerateDataKeyResponse,
  message: (r, head) => ({
    ...head,
    keyId: r.keyId,
    context: r.context,
    withoutDataKey: r.withoutDataKey,
  }),
  result: (reply, r) => ({
    dataKey: r.withoutDataKey === true ? undefined : nonEmpty(reply.dataKey, "data key"),
    wrappedKey: nonEmpty(reply.wrappedKey, "wrapped key"),
    algorithm: algorithmOf(reply),
  }),
});

/** WrapKeyRequest is a request to wrap a data key. */
export interface WrapKeyRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** The id of the wrapping key. The profile has to list it. */
  keyId: string;
  /** The key to wrap, 16 to 8192 bytes. */
  dataKey: Uint8Array;
  /** What the data key is bound to, at most 4 KiB. It is needed again to unwrap the key. */
  context?: Uint8Array;
}

/** WrapKeyResult is the result of `wrapKey`. */
export interface WrapKeyResult extends Described {
  /** The wrapped data key, which is not secret. */
  wrappedKey: Uint8Array;
  /** The wrapping algorithm, such as "aes-gcm". */
  algorithm: string;
}

export const wrapKey = operation<WrapKeyRequest, WrapKeyResult, WrapMessage, WrapKeyResponse>({
  name: "WrapKey",
  service: cryptoService,
  number: 10,
  fields: { keyId: "text", dataKey: "bytes", context: "bytes?" },
  request: WrapMessage,
  reply: WrapKeyResponse,
  message: (r, head) => ({ ...head, keyId: r.keyId, context: r.context, dataKey: r.dataKey }),
  result: (reply) => ({
    wrappedKey: nonEmpty(reply.wrappedKey, "wrapped key"),
    algorithm: algorithmOf(reply),
  }),
});

/** WrappedKey is a wrapped key with its context. */
export interface WrappedKey {
  /** The wrapped key of the result that made it. */
  wrappedKey: Uint8Array;
  /** The context of the wrapped key. It is absent if the key has none. */
  context?: Uint8Array;
}

/** UnwrapKeyRequest is a request for the data key of a wrapped key. */
export interface UnwrapKeyRequest extends WrappedKey {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
}

/** UnwrapKeyResult is the result of `unwrapKey`. */
export interface UnwrapKeyResult extends Described {
  /** The authentic data key. Overwrite it after use. */
  dataKey: Uint8Array;
  /** The wrapping algorithm, such as "aes-gcm". */
  algorithm: string;
}

export const unwrapKey = operation<
  UnwrapKeyRequest,
  UnwrapKeyResult,
  UnwrapMessage,
  UnwrapKeyResponse
>({
  name: "UnwrapKey",
  service: cryptoService,
  number: 11,
  fields: { wrappedKey: "bytes", context: "bytes?" },
  request: UnwrapMessage,
  reply: UnwrapKeyResponse,
  message: (r, head) => ({ ...head, wrappedKey: r.wrappedKey, context: r.context }),
  result: (reply) => ({
    dataKey: nonEmpty(reply.dataKey, "data key"),
    algorithm: algorithmOf(reply),
  }),
});

/** UnwrapBatchRequest is a request for the data keys of several wrapped keys. */
export interface UnwrapBatchRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** 1 to 32 wrapped keys. */
  keys: readonly WrappedKey[];
}

/** UnwrappedKey is the result for one key of a batch: it has either a data key or an error. */
export type UnwrappedKey =
  | {
      /** The authentic data key. Overwrite it after use. */
      dataKey: Uint8Array;
      error?: undefined;
    }
  | {
      dataKey?: undefined;
      /** The error that `unwrapKey` would have thrown. */
      error: CryptoBrokerError;
    };

/** UnwrapBatchResult is the result of `unwrapBatch`. */
export interface UnwrapBatchResult extends Described {
  /** The results in the order of the request. */
  keys: UnwrappedKey[];
}

export const unwrapBatch = operation<
  UnwrapBatchRequest,
  UnwrapBatchResult,
  UnwrapBatchMessage,
  UnwrapBatchResponse
>({
  name: "UnwrapBatch",
  service: cryptoService,
  number: 12,
  fields: { keys: "wrappedKeys" },
  request: UnwrapBatchMessage,
  reply: UnwrapBatchResponse,
  message: (r, head) => ({ ...head, keys: [...r.keys] }),
  result: (reply, r) => {
    const results = reply.results ?? [];
    if (results.length !== r.keys.length) {
      throw new Error(`it has ${results.length} results, expected ${r.keys.length}`);
    }
    return { keys: results.map((result) => unwrapped(result, r.profile ?? "")) };
  },
});

function unwrapped(result: UnwrapResult, profile: string): UnwrappedKey {
  if (result.code === undefined || result.code === 0) {
    return { dataKey: nonEmpty(result.dataKey, "data key") };
  }
  const failure = { code: codeOf(result.code), reason: result.message ?? "" };
  return { error: new CryptoBrokerError("UnwrapBatch", profile, failure) };
}

/** RewrapKeyRequest is a request to wrap a wrapped key again. */
export interface RewrapKeyRequest extends WrappedKey {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** The id of the new wrapping key. It is absent for the newest version of the same key. */
  keyId?: string;
}

/** RewrapKeyResult is the result of `rewrapKey`. */
export interface RewrapKeyResult extends Described {
  /** The wrapped key for the same data key. It has the context of the request. */
  wrappedKey: Uint8Array;
  /**
   * Whether the wrapped key is the key of the request, because a new one would have the same key,
   * version and algorithm.
   */
  unchanged: boolean;
  /** The wrapping algorithm, such as "aes-gcm". */
  algorithm: string;
}

export const rewrapKey = operation<
  RewrapKeyRequest,
  RewrapKeyResult,
  RewrapMessage,
  RewrapKeyResponse
>({
  name: "RewrapKey",
  service: cryptoService,
  number: 13,
  fields: { wrappedKey: "bytes", context: "bytes?", keyId: "text?" },
  request: RewrapMessage,
  reply: RewrapKeyResponse,
  message: (r, head) => ({
    ...head,
    wrappedKey: r.wrappedKey,
    context: r.context,
    keyId: r.keyId,
  }),
  result: (reply) => ({
    wrappedKey: nonEmpty(reply.wrappedKey, "wrapped key"),
    unchanged: reply.unchanged ?? false,
    algorithm: algorithmOf(reply),
  }),
});

/** GetPublicKeyRequest is a request for the public key of a key pair. */
export interface GetPublicKeyRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** The id of the key pair. The profile has to list it. */
  keyId: string;
}

/** GetPublicKeyResult is the result of `getPublicKey`. */
export interface GetPublicKeyResult extends Described {
  /** The SubjectPublicKeyInfo (RFC 5280, section 4.1.2.7). */
  der: Uint8Array;
  /** The same in PEM. */
  pem: string;
  /** The version of the key. It is empty if the key has no versions. */
  version: string;
}

export const getPublicKey = operation<
  GetPublicKeyRequest,
  GetPublicKeyResult,
  GetPublicKeyMessage,
  GetPublicKeyResponse
>({
  name: "GetPublicKey",
  service: cryptoService,
  number: 14,
  fields: { keyId: "text" },
  request: GetPublicKeyMessage,
  reply: GetPublicKeyResponse,
  message: (r, head) => ({ ...head, keyId: r.keyId }),
  result: (reply) => ({
    der: nonEmpty(reply.der, "public key"),
    pem: nonEmpty(reply.pem, "public key in PEM"),
    version: reply.version ?? "",
  }),
});
