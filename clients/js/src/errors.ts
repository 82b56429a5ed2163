// SPDX-License-Identifier: Apache-2.0

/**
 * The names of the codes of gRPC, each at its number. A call that succeeded has the code 0.
 */
const names = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
] as const;

/**
 * Code is the kind of error of a call, by its name in gRPC.
 *
 * - `CANCELLED`: the signal of the call was aborted, or the client was closed.
 * - `INVALID_ARGUMENT`: the request is not valid, or the broker does not have the profile.
 * - `DEADLINE_EXCEEDED`: the call did not end within its time.
 * - `NOT_FOUND`: the broker has no key with the id.
 * - `PERMISSION_DENIED`: the profile does not allow the caller, or the key.
 * - `RESOURCE_EXHAUSTED`: the broker has too much to do. The client tries again.
 * - `FAILED_PRECONDITION`: the profile does not offer the operation, or a key cannot be used.
 * - `ABORTED`: the call conflicted with another call. The client tries again.
 * - `UNIMPLEMENTED`: the version of the broker does not have the operation.
 * - `INTERNAL`: a defect of the broker or of this package.
 * - `UNAVAILABLE`: the broker, or a key manager that it uses, cannot be reached. The client tries
 *   again.
 *
 * Brokers do not send the other codes.
 */
export type Code = Exclude<(typeof names)[number], "OK">;

/** codeOf returns the name of a code of gRPC. */
export function codeOf(number: number): Code {
  const name = names[number];
  return name === undefined || name === "OK" ? "UNKNOWN" : name;
}

/** CryptoBrokerError is the error of every call. It quotes no secrets. */
export class CryptoBrokerError extends Error {
  override readonly name = "CryptoBrokerError";
  /** The kind of error. */
  readonly code: Code;
  /** The name of the operation, such as "HashData". */
  readonly operation: string;
  /** The name of the profile in the request. It is empty if the operation has no profile. */
  readonly profile: string;
  /** A sentence that says what was found and what was expected. */
  readonly reason: string;
  /**
   * Whether the last try failed with a code after which the client tries again, but no time was
   * left. `code` is the code of the last try.
   */
  readonly retryBudgetSpent: boolean;
  /** Whether the client was closed. */
  readonly clientClosed: boolean;

  /** @internal */
  constructor(operation: string, profile: string, failure: Failure) {
    super(
      `crypto broker: ${failure.code}: ${failure.reason}`,
      failure.cause === undefined ? undefined : { cause: failure.cause },
    );
    this.code = failure.code;
    this.operation = operation;
    this.profile = profile;
    this.reason = failure.reason;
    this.retryBudgetSpent = failure.retryBudgetSpent ?? false;
    this.clientClosed = failure.clientClosed ?? false;
  }
}

/** Failure is why a try failed. */
export interface Failure {
  readonly code: Code;
  readonly reason: string;
  readonly cause?: unknown;
  readonly retryBudgetSpent?: boolean;
  readonly clientClosed?: boolean;
  /** Whether the call cannot be made again, whatever the code is. */
  readonly final?: boolean;
}

/** isTransient reports whether the call may be made again. */
export function isTransient({ code, final }: Failure): boolean {
  return !final && (code === "UNAVAILABLE" || code === "RESOURCE_EXHAUSTED" || code === "ABORTED");
}

/** said returns a sentence with operation and profile before it, as a broker does. */
export function said(operation: string, profile: string, sentence: string): string {
  return profile === ""
    ? `${operation}: ${sentence}`
    : `${operation} with profile ${JSON.stringify(profile)}: ${sentence}`;
}
