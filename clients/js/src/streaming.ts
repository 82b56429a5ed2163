// SPDX-License-Identifier: Apache-2.0

import { type ClientDuplexStream, Metadata } from "@grpc/grpc-js";

import type { Chunks } from "./chunks.js";
import type { Ending } from "./ending.js";
import { type Failure, said } from "./errors.js";
import { asBuffer, type Status, type Transport } from "./transport.js";

/** Input is the input of a call that streams. Its first chunk is sent again when it is retried. */
export class Input {
  readonly first: Uint8Array;
  /** Whether more than the first chunk was read. */
  begun = false;
  readonly #chunks: Chunks;
  /** Whether the first chunk is all of the input. */
  readonly #whole: boolean;

  private constructor(chunks: Chunks, first: Uint8Array) {
    this.#chunks = chunks;
    this.first = first;
    this.#whole = first.length < chunks.size;
  }

  /** read reads the first chunk. It throws what the source throws. */
  static async read(chunks: Chunks): Promise<Input> {
    return new Input(chunks, await chunks.next());
  }

  /** next returns the next chunk after the first one, which is empty after the end. */
  next(): Promise<Uint8Array> {
    if (this.#whole) {
      return Promise.resolve(new Uint8Array());
    }
    this.begun = true;
    return this.#chunks.next();
  }

  close(): Promise<void> {
    this.first.fill(0);
    return this.#chunks.close();
  }
}

/** Streaming is one try of a call that streams. */
export interface Streaming {
  operation: string;
  profile: string;
  method: string;
  start: Uint8Array;
  chunk(bytes: Uint8Array): Uint8Array;
}

/**
 * stream sends an input and gives out the replies. It throws Refused if the call or its input
 * failed.
 */
export async function* stream(
  transport: Transport,
  call: Streaming,
  input: Input,
  ending: Ending,
): AsyncGenerator<Uint8Array, void, undefined> {
  const grpc = transport.grpc.makeBidiStreamRequest<Uint8Array, Uint8Array>(
    call.method,
    asBuffer,
    (message) => message,
    new Metadata(),
    ending.deadline > 0 ? { deadline: ending.deadline } : {},
  );
  // The iteration below throws the error. It may come before the iteration begins.
  grpc.on("error", () => undefined);
  ending.onEnd = () => {
    grpc.cancel();
  };
  if (ending.ended) {
    grpc.cancel();
  }
  let unread: Failure | undefined;
  const sent = send(grpc, call, input).catch((cause: unknown) => {
    unread = unreadable(call.operation, call.profile, cause);
    // The broker must not take what it has for all.
    grpc.cancel();
  });
  try {
    for await (const message of grpc as AsyncIterable<Uint8Array>) {
      yield message;
    }
  } catch (error) {
    throw new Refused(
      unread ?? transport.failure(call.operation, call.profile, error as Status, ending),
    );
  } finally {
    ending.onEnd = undefined;
    grpc.cancel();
    await sent;
  }
}

/** Refused is a failure while it is thrown inside this package. */
export class Refused extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.reason);
    this.failure = failure;
  }
}

/** unreadable returns the failure of an input that cannot be read. */
export function unreadable(operation: string, profile: string, cause: unknown): Failure {
  const what = cause instanceof Error ? cause.message : String(cause);
  return {
    code: "UNKNOWN",
    reason: said(operation, profile, `the input cannot be read: ${what}`),
    cause,
  };
}

async function send(
  grpc: ClientDuplexStream<Uint8Array, Uint8Array>,
  call: Streaming,
  input: Input,
): Promise<void> {
  await write(grpc, call.start);
  let chunk = input.first;
  while (chunk.length > 0 && !grpc.destroyed && !grpc.writableEnded) {
    const message = call.chunk(chunk);
    if (!(await write(grpc, message))) {
      return;
    }
    message.fill(0);
    if (chunk !== input.first) {
      chunk.fill(0);
    }
    chunk = await input.next();
  }
  grpc.end();
}

/** write returns false if the stream has ended. */
function write(
  grpc: ClientDuplexStream<Uint8Array, Uint8Array>,
  message: Uint8Array,
): Promise<boolean> {
  return new Promise((resolve) => {
    const ended = (): void => {
      resolve(false);
    };
    // After the end of a call, @grpc/grpc-js does not call back.
    grpc.once("status", ended);
    grpc.write(message, (error?: Error | null) => {
      grpc.off("status", ended);
      resolve(!error);
    });
  });
}
