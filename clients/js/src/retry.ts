// SPDX-License-Identifier: Apache-2.0

import type { Ending } from "./ending.js";
import { type Failure, isTransient } from "./errors.js";

/** firstWaitMs is the longest wait before the second try, and maxWaitMs before any later try. */
const firstWaitMs = 10;
export const maxWaitMs = 1000;

/** Attempt is the outcome of a try: exactly one of its fields is there. */
export type Attempt<T> = { value: T } | { failure: Failure };

/** Retried is a call that may be tried again. */
export interface Retried<T> {
  operation: string;
  profile: string;
  budgetMs: number;
  ending: Ending;
  attempt(): Promise<Attempt<T>>;
}

/**
 * retry tries until the outcome is not a transient failure, or until there is no time for another
 * try.
 */
export async function retry<T>(call: Retried<T>): Promise<Attempt<T>> {
  const { operation, profile, ending } = call;
  const began = performance.now();
  for (let tries = 1; ; tries++) {
    const outcome = await call.attempt();
    if (!("failure" in outcome) || !isTransient(outcome.failure)) {
      return outcome;
    }
    const wait = jittered(tries);
    const took = performance.now() - began;
    if (took + wait > call.budgetMs) {
      return { failure: spent(outcome.failure, tries, took) };
    }
    await pause(wait, ending);
    if (ending.ended) {
      return { failure: ending.failure(operation, profile, outcome.failure.reason) };
    }
  }
}

/**
 * jittered returns how long to wait after this many tries. It is a random time, so that many
 * callers do not try again at the same moment. The longest time doubles with each try, up to
 * maxWaitMs.
 */
export function jittered(tries: number): number {
  return Math.random() * Math.min(maxWaitMs, firstWaitMs * 2 ** (tries - 1));
}

function spent(failure: Failure, tries: number, took: number): Failure {
  const times = tries === 1 ? "1 try" : `${tries} tries`;
  return {
    ...failure,
    reason: `${failure.reason} (given up after ${Math.round(took)} ms in ${times})`,
    retryBudgetSpent: true,
  };
}

/** pause waits, but not longer than the call lasts. */
function pause(ms: number, ending: Ending): Promise<void> {
  if (ending.ended) {
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      ending.onEnd = undefined;
      resolve();
    };
    const timer = setTimeout(done, ms);
    ending.onEnd = done;
  });
}
