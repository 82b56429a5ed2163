// SPDX-License-Identifier: Apache-2.0

import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

import { Status } from "./messages/cryptobroker/stream/v1/stream.js";

/** Reply is one reply on the stream, whose body is not decoded yet. */
export interface Reply {
  id: number;
  /** The number of the body, which is the number of the operation. */
  number: number;
  /** A copy of the encoded response. */
  body: Uint8Array | undefined;
  /** Why the call failed. */
  status: Status | undefined;
}

/** The numbers of the fields of ExchangeResponse and of Reply. */
const exchangeReplies = 1;
const exchangeGoAway = 2;
const replyId = 1;
const replyStatus = 2;

/** readExchange reads an ExchangeResponse. It throws if the message is not valid. */
export function readExchange(message: Uint8Array): { replies: Reply[]; goAway: boolean } {
  const reader = new BinaryReader(message);
  const replies: Reply[] = [];
  let goAway = false;
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (number === exchangeReplies) {
      replies.push(readReply(reader, reader.uint32()));
    } else {
      goAway ||= number === exchangeGoAway;
      reader.skip(type);
    }
  }
  return { replies, goAway };
}

function readReply(reader: BinaryReader, length: number): Reply {
  const end = reader.pos + length;
  const reply: Reply = { id: 0, number: 0, body: undefined, status: undefined };
  while (reader.pos < end) {
    const [number, type] = reader.tag();
    if (number === replyId) {
      reply.id = Number(reader.uint64());
    } else if (number === replyStatus) {
      reply.status = Status.decode(reader, reader.uint32());
    } else if (type === WireType.LengthDelimited) {
      reply.number = number;
      reply.body = new Uint8Array(reader.bytes());
    } else {
      reader.skip(type);
    }
  }
  return reply;
}
