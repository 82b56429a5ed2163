// SPDX-License-Identifier: Apache-2.0

import {
  DecryptStreamRequest as DecryptMessage,
  DecryptStreamResponse,
  EncryptStreamRequest as EncryptMessage,
  HashStreamRequest as HashMessage,
  HashStreamResponse,
} from "../messages/cryptobroker/stream/v1/stream.js";
import { HashOutputFormat } from "../messages/cryptobroker/v1/service.js";
import type { Described, Head } from "../operation.js";

/** hashChunk and cipherChunk are how many bytes of an input a message has. */
export const hashChunk = 256 << 10;
export const cipherChunk = 64 << 10;

/** HashStreamRequest says how to hash a stream. */
export interface HashStreamRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
}

/** EncryptStreamRequest says how to encrypt a stream. */
export interface EncryptStreamRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** The id of the wrapping key. The profile has to list it. */
  keyId: string;
  /** What the stream is bound to, at most 4 KiB. It is needed again to decrypt. */
  context?: Uint8Array;
}

/** DecryptStreamRequest says how to decrypt a stream. */
export interface DecryptStreamRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** The context of the stream. It is absent if the stream has none. */
  context?: Uint8Array;
}

/** StreamResult is the result of a stream that has ended well. */
export interface StreamResult extends Described {
  /** The algorithm of the stream, such as "aes256-gcm-hkdf-64kb". */
  algorithm: string;
}

/**
 * CipherStream is the output of `encryptStream` and `decryptStream`. It can be iterated once, and
 * goes into `pipeline` of node:stream/promises.
 */
export interface CipherStream extends AsyncIterable<Uint8Array> {
  /** What was done. It is undefined until the iteration has ended well. */
  readonly result: StreamResult | undefined;
}

const service = "/cryptobroker.stream.v1.StreamService";

export const hashStream = {
  operation: "HashData",
  method: `${service}/HashStream`,
  start: (head: Head): Uint8Array =>
    HashMessage.encode({
      start: { ...head, outputFormat: HashOutputFormat.HASH_OUTPUT_FORMAT_RAW },
    }).finish(),
  chunk: (chunk: Uint8Array): Uint8Array => HashMessage.encode({ chunk }).finish(),
  reply: HashStreamResponse,
};

export const encryptStream = {
  operation: "EncryptStream",
  fields: { profile: "text?", keyId: "text", context: "bytes?" },
  method: `${service}/EncryptStream`,
  start: (r: EncryptStreamRequest, head: Head): Uint8Array =>
    EncryptMessage.encode({ start: { ...r, ...head } }).finish(),
} as const;

export const decryptStream = {
  operation: "DecryptStream",
  fields: { profile: "text?", context: "bytes?" },
  method: `${service}/DecryptStream`,
  start: (r: DecryptStreamRequest, head: Head): Uint8Array =>
    DecryptMessage.encode({ start: { ...r, ...head } }).finish(),
} as const;

/** cipherMessage encodes a chunk for both, and cipherReply reads the replies of both. */
export const cipherMessage = (chunk: Uint8Array): Uint8Array =>
  EncryptMessage.encode({ chunk }).finish();
export const cipherReply = DecryptStreamResponse;
