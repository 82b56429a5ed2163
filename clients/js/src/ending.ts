// SPDX-License-Identifier: Apache-2.0

import { setMaxListeners } from "node:events";

import { type Failure, said } from "./errors.js";

/** Ending is what ends a call before its reply: its time, its signal, or the end of the client. */
export class Ending {
  /** When the time of the call is over, in milliseconds since 1970; 0 for never. */
  readonly deadline: number;
  /** Called once when the call ends early. Whatever the call waits for sets it. */
  onEnd: (() => void) | undefined;

  #why: "deadline" | "signal" | "closed" | undefined;
  #cause: unknown;
  readonly #signal: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(timeoutMs: number, signal: AbortSignal | undefined) {
    this.deadline = timeoutMs > 0 ? Date.now() + timeoutMs : 0;
    if (timeoutMs > 0) {
      this.#timer = setTimeout(() => {
        this.#end("deadline", undefined);
      }, timeoutMs);
    }
    this.#signal = signal;
    if (signal?.aborted) {
      this.#aborted();
    } else if (signal !== undefined) {
      // Many calls may share a signal. Node.js would warn of more than ten.
      setMaxListeners(0, signal);
      signal.addEventListener("abort", this.#aborted);
    }
  }

  readonly #aborted = (): void => {
    const cause: unknown = this.#signal?.reason;
    const late = cause instanceof DOMException && cause.name === "TimeoutError";
    this.#end(late ? "deadline" : "signal", cause);
  };

  /** close ends the call because the client was closed. */
  close(): void {
    this.#end("closed", undefined);
  }

  /** passed ends the call because somebody else saw that its time is over. */
  passed(): void {
    this.#end("deadline", undefined);
  }

  /** late reports whether the time of the call is over. */
  get late(): boolean {
    return this.#why === "deadline";
  }

  get ended(): boolean {
    return this.#why !== undefined;
  }

  #end(why: "deadline" | "signal" | "closed", cause: unknown): void {
    if (this.#why !== undefined) {
      return;
    }
    this.#why = why;
    this.#cause = cause;
    this.onEnd?.();
  }

  /** failure returns why the call has ended. `last` is the reason of the last try, if any. */
  failure(operation: string, profile: string, last?: string): Failure {
    const end = last === undefined ? "" : `; the last try: ${last}`;
    const sentence = (text: string): string => said(operation, profile, text + end);
    switch (this.#why) {
      case "deadline":
        return {
          code: "DEADLINE_EXCEEDED",
          reason: sentence("there was no reply within the time for the call"),
          cause: this.#cause,
        };
      case "closed":
        return {
          code: "CANCELLED",
          reason: sentence("the client was closed"),
          clientClosed: true,
        };
      default:
        return {
          code: "CANCELLED",
          reason: sentence("the call was aborted"),
          cause: this.#cause,
        };
    }
  }

  /** dispose frees the timer and the signal. */
  dispose(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#aborted);
    this.onEnd = undefined;
  }
}
