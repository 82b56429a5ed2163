// SPDX-License-Identifier: Apache-2.0

import { Client, connectivityState, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";

import type { Ending } from "./ending.js";
import { type Code, codeOf, type Failure, said } from "./errors.js";
import { type Attempt, maxWaitMs } from "./retry.js";

/**
 * maxReply is the size in bytes of the largest message that the client reads. A broker sends
 * messages of up to 4 MiB.
 */
const maxReply = 8 << 20;

/**
 * These bound how long calls wait for a broker that does not run any more, in milliseconds. A broker
 * that runs may read nothing of a connection for a minute, while other clients use all memory of its
 * caller.
 */
const pingAfterMs = 20_000;
const pingTimeoutMs = 70_000;

/** Status is the end of a call of gRPC. */
export interface Status {
  code: number;
  details: string;
}

/** Transport is the connection to a broker. It connects again by itself. */
export class Transport {
  readonly grpc: Client;
  readonly #socket: string;

  constructor(socket: string) {
    this.#socket = socket;
    this.grpc = new Client(`unix:${socket}`, credentials.createInsecure(), {
      "grpc.default_authority": "localhost",
      "grpc.primary_user_agent": "crypto-broker-js",
      "grpc.max_receive_message_length": maxReply,
      "grpc.max_send_message_length": maxReply,
      "grpc.initial_reconnect_backoff_ms": 10,
      "grpc.max_reconnect_backoff_ms": maxWaitMs,
      "grpc.keepalive_time_ms": pingAfterMs,
      "grpc.keepalive_timeout_ms": pingTimeoutMs,
      "grpc.enable_retries": 0,
      "grpc.service_config_disable_resolution": 1,
      // Another client may have closed a connection of a shared pool.
      "grpc.use_local_subchannel_pool": 1,
    });
  }

  /** unary makes a unary call of gRPC. */
  unary(
    operation: string,
    profile: string,
    method: string,
    request: Uint8Array,
    ending: Ending,
  ): Promise<Attempt<Uint8Array>> {
    return new Promise((resolve) => {
      const call = withoutStack(() =>
        this.grpc.makeUnaryRequest(
          method,
          asBuffer,
          (reply) => reply,
          request,
          new Metadata(),
          ending.deadline > 0 ? { deadline: ending.deadline } : {},
          (error: ServiceError | null, reply?: Uint8Array) => {
            ending.onEnd = undefined;
            if (error !== null) {
              resolve({ failure: this.failure(operation, profile, error, ending) });
            } else {
              resolve({ value: reply ?? new Uint8Array() });
            }
          },
        ),
      );
      ending.onEnd = () => {
        call.cancel();
      };
    });
  }

  /** failure returns the failure of a call of gRPC. */
  failure(operation: string, profile: string, status: Status, ending: Ending): Failure {
    const code = codeOfStatus(status, ending);
    if (code === "DEADLINE_EXCEEDED" && ending.deadline > 0) {
      // gRPC or the broker may see that the time is over before the timer of the call does.
      ending.passed();
    }
    if (ending.ended && (code === "CANCELLED" || code === "DEADLINE_EXCEEDED")) {
      return ending.failure(operation, profile);
    }
    return this.refused(operation, profile, code, status.details);
  }

  /**
   * refused returns the failure of a status. Sentences of a broker begin with the operation. To
   * other sentences, refused adds the operation and the socket.
   */
  refused(operation: string, profile: string, code: Code, sentence: string): Failure {
    const reason = sentence.startsWith(operation)
      ? sentence
      : said(operation, profile, `${sentence} (socket ${this.#socket})`);
    return { code, reason };
  }

  /** onNextConnection calls a function once, when the current connection is not used any more. */
  onNextConnection(then: () => void): void {
    this.grpc.getChannel().watchConnectivityState(connectivityState.READY, Infinity, then);
  }

  close(): void {
    this.grpc.close();
  }
}

/**
 * withoutStack calls a function that makes errors which nobody sees. @grpc/grpc-js makes one for each
 * call, and its stack would cost more than the rest of this client.
 */
function withoutStack<T>(begin: () => T): T {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return begin();
  } finally {
    Error.stackTraceLimit = limit;
  }
}

/** codeOfStatus returns the code of a status. */
export function codeOfStatus({ code, details }: Status, ending?: Ending): Code {
  const name = codeOf(code);
  // A connection that breaks ends some calls without a status of the broker. @grpc/grpc-js then
  // makes one, whose code depends on what it noticed first.
  const broken =
    (name === "INTERNAL" && details.startsWith("Received RST_STREAM")) ||
    (name === "CANCELLED" && details === "Call cancelled" && ending?.ended !== true);
  return broken ? "UNAVAILABLE" : name;
}

/** asBuffer returns the same bytes as a Buffer. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
