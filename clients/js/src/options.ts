// SPDX-License-Identifier: Apache-2.0

import { resolve } from "node:path";
import { env } from "node:process";

/** DEFAULT_SOCKET is the path of the socket on which brokers listen by default. */
export const DEFAULT_SOCKET = "/tmp/open-crypto-broker/crypto-broker-server.sock";

/** SOCKET_VARIABLE is the name of the environment variable with the path of the socket. */
export const SOCKET_VARIABLE = "CRYPTO_BROKER_SOCKET";

/** defaultRetryBudgetMs is enough for the start of a broker. */
const defaultRetryBudgetMs = 60_000;

/** maxTimeoutMs is the longest time that a timer of Node.js can wait. */
const maxTimeoutMs = 2 ** 31 - 1;

/** TraceContext is the trace that a call belongs to (W3C Trace Context). */
export interface TraceContext {
  /** 32 hexadecimal digits, as in the header traceparent. */
  traceId?: string;
  /** 16 hexadecimal digits, as in the header traceparent. */
  spanId?: string;
  /** 2 hexadecimal digits, as in the header traceparent. */
  traceFlags?: string;
  /** The value of the header tracestate. */
  traceState?: string;
  /**
   * An id that the caller chooses, at most 128 characters of printable ASCII. Audit records have
   * it.
   */
  correlationId?: string;
}

/** Deprecation announces the end of a profile. A field is empty if the profile does not have it. */
export interface Deprecation {
  /** The name of the profile. */
  profile: string;
  /** The name of the profile to use instead. */
  replacedBy: string;
  /** Since when the profile should not be used. */
  since: string;
  /** The time after which the profile may be removed. */
  removeAfter: string;
  /** Why the profile should not be used. */
  reason: string;
}

/** ClientOptions configure a client. */
export interface ClientOptions {
  /**
   * The path of the broker's socket. The default is the value of the environment variable
   * CRYPTO_BROKER_SOCKET, or else DEFAULT_SOCKET.
   */
  socket?: string;
  /** The profile of all requests that do not name a profile. */
  profile?: string;
  /**
   * For how long after its begin a call is tried again, if the broker cannot be reached or is
   * busy, in milliseconds. The default is 60,000. With 0 there is one try. The longest wait
   * between two tries is one second.
   */
  retryBudgetMs?: number;
  /**
   * The time of every call with all its tries, in milliseconds, at most 2,147,483,647. The
   * default, 0, is no limit.
   */
  timeoutMs?: number;
  /** Returns the trace context of a call. The client calls it once for each call. */
  traceContext?: () => TraceContext | undefined;
  /** Gets warnings of deprecated profiles, each different warning once. */
  onDeprecation?: (deprecation: Deprecation) => void;
  /**
   * Whether small requests share one stream, if the broker has it. The default is true. Unary
   * calls are slower; false is for comparisons.
   */
  exchange?: boolean;
}

/** CallOptions configure one call. */
export interface CallOptions {
  /**
   * Ends the call. The call then fails with the code CANCELLED, or DEADLINE_EXCEEDED if the reason
   * of the signal is a TimeoutError, and the reason is the cause of the error.
   */
  signal?: AbortSignal;
  /**
   * The time of the call with all its tries, in milliseconds, at most 2,147,483,647. It replaces
   * the value of the client; 0 is no limit.
   */
  timeoutMs?: number;
  /** The trace that the call belongs to. It replaces what the client's function returns. */
  traceContext?: TraceContext;
}

/** Settings are the values of the options of a client. */
export interface Settings extends ClientOptions {
  socket: string;
  profile: string;
  retryBudgetMs: number;
  timeoutMs: number;
  exchange: boolean;
}

const known = [
  "exchange",
  "onDeprecation",
  "profile",
  "retryBudgetMs",
  "socket",
  "timeoutMs",
  "traceContext",
];

/** settingsOf returns the settings of a client. It throws a TypeError if an option is not valid. */
export function settingsOf(options: ClientOptions): Settings {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      throw new TypeError(
        `crypto broker: found the unknown option ${JSON.stringify(name)}, expected one of ${known.join(", ")}`,
      );
    }
  }
  const socket = options.socket ?? (env[SOCKET_VARIABLE] || DEFAULT_SOCKET);
  if (typeof socket !== "string" || socket === "") {
    throw new TypeError("crypto broker: the path of the socket is empty, expected a path");
  }
  const retryBudgetMs = options.retryBudgetMs ?? defaultRetryBudgetMs;
  if (typeof retryBudgetMs !== "number" || !(retryBudgetMs >= 0)) {
    throw new TypeError(
      `crypto broker: retryBudgetMs is ${String(retryBudgetMs)}, expected 0 or a positive number`,
    );
  }
  return {
    ...options,
    socket: resolve(socket),
    profile: options.profile ?? "",
    retryBudgetMs,
    timeoutMs: timeoutOf(options.timeoutMs ?? 0),
    exchange: options.exchange ?? true,
  };
}

/** timeoutOf returns a timeout. It throws a TypeError if it is not valid. */
export function timeoutOf(timeoutMs: number): number {
  if (typeof timeoutMs !== "number" || !(timeoutMs >= 0 && timeoutMs <= maxTimeoutMs)) {
    throw new TypeError(
      `crypto broker: timeoutMs is ${String(timeoutMs)}, expected 0 to ${maxTimeoutMs}`,
    );
  }
  return timeoutMs;
}
