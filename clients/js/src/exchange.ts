// SPDX-License-Identifier: Apache-2.0

import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { type ClientDuplexStream, Metadata, status } from "@grpc/grpc-js";

import type { Ending } from "./ending.js";
import { codeOf, said } from "./errors.js";
import type { Operation } from "./operation.js";
import { readExchange, type Reply } from "./replies.js";
import type { Attempt } from "./retry.js";
import { asBuffer, codeOfStatus, type Status, type Transport } from "./transport.js";

/**
 * maxExchanged is the size in bytes of the largest request that is sent on the stream. Larger
 * requests would delay others, and gain nothing.
 */
export const maxExchanged = 16 << 10;

/** ok is the code of a stream that the broker has ended in order. */
const ok: number = status.OK;

/** maxInFlight is how many calls may wait for their reply on the stream at one time. */
const maxInFlight = 1024;

/** maxMessage is after how many bytes the calls that wait are split into messages. */
const maxMessage = 256 << 10;

/** idleMs is after which time without calls the stream is closed, so that the process may end. */
const idleMs = 1000;

/** exchangeCalls and exchangeGivenUp are the tags of the fields of ExchangeRequest. */
const exchangeCalls = (1 << 3) | 2;
const exchangeGivenUp = (2 << 3) | 0;
/** callId and callTimeout are the tags of the fields of Call. */
const callId = (1 << 3) | 0;
const callTimeout = (2 << 3) | 0;

/** Outcome is undefined if the call has to be made without the stream. */
type Outcome = Attempt<Uint8Array> | undefined;

/** Waiting is a call that waits for its reply. */
interface Waiting {
  number: number;
  operation: string;
  profile: string;
  settle(outcome: Outcome): void;
}

/** Exchanges are the streams of a client, one at a time. A new one replaces one that has ended. */
export class Exchanges {
  readonly transport: Transport;
  #current: Exchange | undefined;
  #withoutExchange = false;
  #inFlight = 0;
  /** Wakes the calls that wait for their turn. */
  readonly #queue = new Set<() => void>();

  constructor(transport: Transport) {
    this.transport = transport;
  }

  /** call makes a call on the stream. */
  async call(
    operation: Operation<never, unknown>,
    profile: string,
    request: Uint8Array,
    ending: Ending,
  ): Promise<Outcome> {
    if (this.#withoutExchange) {
      return undefined;
    }
    if (!(await this.#turn(ending))) {
      return { failure: ending.failure(operation.name, profile) };
    }
    if (this.#current === undefined || this.#current.ended) {
      this.#current = new Exchange(this);
    }
    return this.#current.call(operation, profile, request, ending);
  }

  /** turn waits until a call may use the stream. It returns false if the call ends before that. */
  async #turn(ending: Ending): Promise<boolean> {
    if (this.#inFlight < maxInFlight) {
      this.#inFlight++;
      return true;
    }
    const woken = await new Promise<boolean>((resolve) => {
      const wake = (): void => {
        ending.onEnd = undefined;
        resolve(true);
      };
      this.#queue.add(wake);
      ending.onEnd = () => {
        this.#queue.delete(wake);
        resolve(false);
      };
    });
    if (woken && ending.ended) {
      this.answered(1);
    }
    return !ending.ended;
  }

  /** answered counts calls whose turn is over, and gives their turns to others. */
  answered(calls: number): void {
    this.#inFlight -= calls;
    for (const wake of this.#queue) {
      if (this.#inFlight >= maxInFlight) {
        return;
      }
      this.#queue.delete(wake);
      this.#inFlight++;
      wake();
    }
  }

  /** unimplemented says that the broker of this connection does not have the stream. */
  unimplemented(): void {
    if (!this.#withoutExchange) {
      this.#withoutExchange = true;
      this.transport.onNextConnection(() => {
        this.#withoutExchange = false;
      });
    }
  }

  close(): void {
    this.#current?.close();
  }
}

/** Exchange is one stream that many calls share. */
class Exchange {
  ended = false;
  readonly #owner: Exchanges;
  readonly #stream: ClientDuplexStream<Uint8Array, Uint8Array>;
  /** The calls by their ids. A call that nobody waits for any more is undefined. */
  readonly #pending = new Map<number, Waiting | undefined>();
  readonly #idle: NodeJS.Timeout;
  #lastId = 0;
  #writer = new BinaryWriter();
  #size = 0;
  #messages: Uint8Array[] = [];
  #scheduled = false;
  #blocked = false;

  constructor(owner: Exchanges) {
    this.#owner = owner;
    this.#stream = owner.transport.grpc.makeBidiStreamRequest<Uint8Array, Uint8Array>(
      "/cryptobroker.stream.v1.StreamService/Exchange",
      asBuffer,
      (message) => message,
      new Metadata(),
    );
    this.#stream.on("data", (message: Uint8Array) => {
      this.#take(message);
    });
    this.#stream.on("drain", () => {
      this.#blocked = false;
      this.#send();
    });
    // The event "status" follows, and has the reason.
    this.#stream.on("error", () => undefined);
    this.#stream.on("status", (end: Status) => {
      this.#end(end);
    });
    this.#idle = setTimeout(() => {
      if (this.#pending.size === 0) {
        this.close();
      }
    }, idleMs);
    this.#idle.unref();
  }

  /** call makes a call. The stream has not ended. */
  call(
    operation: Operation<never, unknown>,
    profile: string,
    request: Uint8Array,
    ending: Ending,
  ): Promise<Outcome> {
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      this.#pending.set(id, {
        number: operation.number,
        operation: operation.name,
        profile,
        settle: (outcome) => {
          ending.onEnd = undefined;
          resolve(outcome);
        },
      });
      ending.onEnd = () => {
        // The broker still serves the call, so the call keeps its place.
        this.#pending.set(id, undefined);
        if (!ending.late) {
          // A broker knows itself when the time of a call is over.
          this.#add(2 * 10, (w) => w.uint32(exchangeGivenUp).uint64(id));
        }
        resolve({ failure: ending.failure(operation.name, profile) });
      };
      const left = Math.max(1, Math.ceil(ending.deadline - Date.now()));
      const timeout = ending.deadline > 0 ? left : 0;
      this.#add(request.length, (w) => {
        w.uint32(exchangeCalls).fork().uint32(callId).uint64(id);
        if (timeout > 0) {
          w.uint32(callTimeout).uint32(timeout);
        }
        w.uint32((operation.number << 3) | 2)
          .bytes(request)
          .join();
      });
    });
  }

  /** add appends to the message that is sent next. */
  #add(size: number, append: (writer: BinaryWriter) => void): void {
    if (this.ended) {
      return;
    }
    append(this.#writer);
    this.#size += size;
    if (this.#size >= maxMessage) {
      this.#finish();
    }
    if (!this.#scheduled) {
      this.#scheduled = true;
      // Other calls may be added first, so that one message has more calls.
      setImmediate(() => {
        this.#scheduled = false;
        this.#finish();
        this.#send();
      });
    }
  }

  #finish(): void {
    if (this.#size > 0) {
      this.#messages.push(this.#writer.finish());
      this.#writer = new BinaryWriter();
      this.#size = 0;
    }
  }

  #send(): void {
    while (!this.ended && !this.#blocked) {
      const message = this.#messages.shift();
      if (message === undefined) {
        return;
      }
      this.#blocked = !this.#stream.write(message, () => message.fill(0));
    }
  }

  /** take gives the replies of one message to their calls. */
  #take(message: Uint8Array): void {
    if (this.ended) {
      return;
    }
    try {
      const { replies, goAway } = readExchange(message);
      for (const reply of replies) {
        this.#answer(reply);
      }
      if (goAway) {
        this.#end({ code: status.UNAVAILABLE, details: "the broker shuts down" });
        this.#stream.cancel();
      }
    } catch (error) {
      this.#end({ code: status.INTERNAL, details: String(error) });
      this.#stream.cancel();
    } finally {
      message.fill(0);
    }
  }

  #answer(reply: Reply): void {
    const call = this.#pending.get(reply.id);
    if (!this.#pending.delete(reply.id)) {
      return;
    }
    this.#owner.answered(1);
    if (this.#pending.size === 0) {
      this.#idle.refresh();
    }
    if (call === undefined) {
      return;
    }
    if (reply.status !== undefined) {
      const code = codeOf(reply.status.code ?? 0);
      const { operation, profile } = call;
      // The broker may have the operation as a unary call only.
      call.settle(
        code === "UNIMPLEMENTED"
          ? undefined
          : {
              failure: this.#owner.transport.refused(
                operation,
                profile,
                code,
                reply.status.message ?? "",
              ),
            },
      );
    } else if (reply.number === call.number && reply.body !== undefined) {
      call.settle({ value: reply.body });
    } else {
      // It is no reply to this call. The unary call gets one.
      call.settle(undefined);
    }
  }

  /**
   * end gives all calls that are left their outcome. If one of them may have caused the end of the
   * stream, each is made as a unary call, and gets its own answer.
   */
  #end(end: Status): void {
    if (this.ended) {
      return;
    }
    this.ended = true;
    clearTimeout(this.#idle);
    const code = codeOfStatus(end);
    if (code === "UNIMPLEMENTED") {
      this.#owner.unimplemented();
    }
    const lost =
      end.code === ok ||
      code === "UNAVAILABLE" ||
      code === "DEADLINE_EXCEEDED" ||
      code === "CANCELLED";
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    this.#messages = [];
    this.#owner.answered(pending.length);
    for (const call of pending) {
      if (call === undefined) {
        continue;
      }
      const { operation, profile } = call;
      const sentence = end.details === "" ? "the broker has closed the stream" : end.details;
      call.settle(
        lost
          ? {
              failure: {
                code: "UNAVAILABLE",
                reason: said(operation, profile, sentence),
              },
            }
          : undefined,
      );
    }
  }

  /** close ends the stream, which no call uses. */
  close(): void {
    if (!this.ended) {
      this.ended = true;
      clearTimeout(this.#idle);
      this.#stream.end();
    }
  }
}
