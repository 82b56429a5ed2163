// SPDX-License-Identifier: Apache-2.0

import {
  HashOutputFormat,
  HashDataRequest as RequestMessage,
  HashDataResponse,
} from "../messages/cryptobroker/v1/service.js";
import {
  algorithmOf,
  cryptoService,
  type Described,
  hex,
  operation,
  present,
} from "../operation.js";

/** HashDataRequest is a request for a digest. */
export interface HashDataRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** What to hash, at most 1 MiB. `hashStream` hashes larger inputs. */
  input: Uint8Array;
}

/** HashDataResult is a digest. */
export interface HashDataResult extends Described {
  /** The digest. */
  digest: Uint8Array;
  /** The digest in lower-case hexadecimal digits. */
  hex: string;
  /** The algorithm of the profile, such as "sha3-512". */
  algorithm: string;
}

export const hashData = operation<
  HashDataRequest,
  HashDataResult,
  RequestMessage,
  HashDataResponse
>({
  name: "HashData",
  service: cryptoService,
  number: 3,
  fields: { input: "bytes" },
  request: RequestMessage,
  reply: HashDataResponse,
  message: ({ input }, head) => ({
    ...head,
    input,
    outputFormat: HashOutputFormat.HASH_OUTPUT_FORMAT_RAW,
  }),
  result: hashed,
});

/** hashed reads a HashDataResponse or a HashStreamResponse, which have the same fields. */
export function hashed(reply: HashDataResponse): Omit<HashDataResult, "deprecation"> {
  const digest = present(reply.hashValueRaw, "digest");
  return { digest, hex: hex(digest), algorithm: algorithmOf(reply) };
}
