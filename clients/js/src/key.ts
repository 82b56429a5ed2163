// SPDX-License-Identifier: Apache-2.0

import type { KeySource, SignKeySource } from "./messages/cryptobroker/v1/key_source.js";

/** Key is a key of a request. keyId and rawKey make it. */
export type Key = { readonly keyId: string } | { readonly rawKey: Uint8Array };

/**
 * keyId returns the key of the broker with an id. The id has at most 64 bytes of printable ASCII
 * without spaces. The profile has to list it.
 */
export function keyId(id: string): Key {
  return { keyId: id };
}

/**
 * rawKey returns a key that the request brings: the 16, 24 or 32 bytes of an AES key, or a key in
 * PEM or DER, at most 64 KiB. A profile that lists keys of the broker refuses it.
 */
export function rawKey(key: Uint8Array): Key {
  return { rawKey: key };
}

/** isKey reports whether a value is a key. */
export function isKey(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Object.keys(value).length !== 1) {
    return false;
  }
  return (
    ("keyId" in value && typeof value.keyId === "string") ||
    ("rawKey" in value && value.rawKey instanceof Uint8Array)
  );
}

/** keySource returns the key, or the two keys of a hybrid, for operations with key pairs. */
export function signKeySource(
  key: KeySource,
  postQuantumKey: KeySource | undefined,
): SignKeySource {
  return postQuantumKey === undefined
    ? { single: key }
    : { componentKeys: { keys: [key, postQuantumKey] } };
}
