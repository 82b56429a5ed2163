// SPDX-License-Identifier: Apache-2.0

import { BinaryReader, type BinaryWriter } from "@bufbuild/protobuf/wire";

import type { Fields, Kind } from "./fields.js";
import type { CryptoDescriptor, Metadata } from "./messages/cryptobroker/v1/metadata.js";
import type { Deprecation } from "./options.js";

/** Head are the fields that the messages of all operations have. */
export interface Head {
  profile: string;
  metadata: Metadata | undefined;
}

interface Encoder<Message> {
  encode(message: Message): BinaryWriter;
}

interface Decoder<Message> {
  decode(reader: BinaryReader): Message;
}

/** Description is what an operation needs to be called. */
interface Description<Request, Result, Message, Reply> {
  /** The name of the method, such as "HashData". */
  name: string;
  service: string;
  /** The number of the request in Call and of the response in Reply, 0 if Exchange has neither. */
  number: number;
  fields: Fields<Request>;
  request: Encoder<Message>;
  reply: Decoder<Reply>;
  /** Returns the message for a request. */
  message(request: Request, head: Head): Message;
  /** Returns the result of a reply. It throws if the reply lacks a field. */
  result(reply: Reply, request: Request): Omit<Result, "deprecation">;
}

/** Operation is one operation of the broker. */
export interface Operation<Request, Result> {
  readonly name: string;
  readonly method: string;
  readonly number: number;
  readonly fields: Readonly<Record<string, Kind>>;
  encode(request: Request, head: Head): Uint8Array;
  /** decode reads a reply and overwrites it. It throws if the reply cannot be read. */
  decode(reply: Uint8Array, request: Request): Result;
}

/** Described are the fields that all results have. */
export interface Described {
  /** The warning of a deprecated profile, else undefined. */
  deprecation: Deprecation | undefined;
}

/** operation returns an operation. */
export function operation<Request, Result extends Described, Message, Reply>(
  d: Description<Request, Result, Message, Reply & { metadata?: Metadata | undefined }>,
): Operation<Request, Result> {
  return {
    name: d.name,
    method: `/${d.service}/${d.name}`,
    number: d.number,
    fields: { profile: "text?", ...d.fields },
    encode: (request, head) => d.request.encode(d.message(request, head)).finish(),
    decode: (wire, request) => {
      const reply = readOnce(d.reply, wire);
      return {
        ...d.result(reply, request),
        deprecation: deprecationOf(reply.metadata),
      } as unknown as Result;
    },
  };
}

/** Owned reads bytes as copies, so that what they were read from can be overwritten. */
class Owned extends BinaryReader {
  override bytes(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(super.bytes());
  }
}

/** readOnce decodes a message and overwrites it. */
export function readOnce<Message>(decoder: Decoder<Message>, wire: Uint8Array): Message {
  try {
    return decoder.decode(new Owned(wire));
  } finally {
    wire.fill(0);
  }
}

/** present returns a field of a reply. It throws if the field is absent. */
export function present<T>(field: T | undefined, what: string): T {
  if (field === undefined) {
    throw new Error(`it has no ${what}`);
  }
  return field;
}

/** nonEmpty returns a field of a reply. It throws if the field is absent or empty. */
export function nonEmpty<T extends string | Uint8Array>(field: T | undefined, what: string): T {
  return present(field?.length === 0 ? undefined : field, what);
}

/** algorithmOf returns the algorithm of a reply. */
export function algorithmOf(reply: { descriptor?: CryptoDescriptor | undefined }): string {
  return reply.descriptor?.algorithm ?? "";
}

/** deprecationOf returns the warning in the metadata of a reply. */
export function deprecationOf(metadata: Metadata | undefined): Deprecation | undefined {
  const warning = metadata?.deprecation;
  return (
    warning && {
      profile: warning.profile ?? "",
      replacedBy: warning.replacedBy ?? "",
      since: warning.deprecatedSince ?? "",
      removeAfter: warning.removeAfter ?? "",
      reason: warning.reason ?? "",
    }
  );
}

/** cryptoService has most operations. */
export const cryptoService = "cryptobroker.v1.CryptoService";

/** hex returns bytes in lower-case hexadecimal digits. */
export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}
