// SPDX-License-Identifier: Apache-2.0

import { isKey } from "./key.js";

/**
 * Kind is what a field of a request has to be. A question mark says that the field may be absent.
 */
export type Kind = `${keyof typeof expected}${"" | "?"}`;

/** Fields are the fields of a request by their names. */
export type Fields<Request> = Readonly<Record<Exclude<keyof Request, "profile"> & string, Kind>>;

const expected = {
  bytes: { name: "a Uint8Array", is: (v: unknown) => v instanceof Uint8Array },
  text: { name: "a string", is: (v: unknown) => typeof v === "string" },
  texts: {
    name: "an array of strings",
    is: (v: unknown) => Array.isArray(v) && v.every((e) => typeof e === "string"),
  },
  flag: { name: "a boolean", is: (v: unknown) => typeof v === "boolean" },
  count: {
    name: "a whole number from 0 to 4294967295",
    is: (v: unknown) => Number.isInteger(v) && (v as number) >= 0 && (v as number) < 2 ** 32,
  },
  time: {
    name: "a Date after 1969",
    is: (v: unknown) => v instanceof Date && v.getTime() >= 0,
  },
  key: { name: "keyId(…) or rawKey(…)", is: isKey },
  format: {
    name: '"raw", "der", "pem" or "cms"',
    is: (v: unknown) => v === "raw" || v === "der" || v === "pem" || v === "cms",
  },
  wrappedKeys: {
    name: "an array of objects with a wrappedKey and an optional context, both Uint8Arrays",
    is: (v: unknown) => Array.isArray(v) && v.every(isWrappedKey),
  },
};

function isWrappedKey(v: unknown): boolean {
  return (
    typeof v === "object" &&
    v !== null &&
    wrong(v, { wrappedKey: "bytes", context: "bytes?" }) === undefined
  );
}

/**
 * wrong returns what is wrong with the fields of a request, or undefined. It does not quote their
 * values, which may be secret.
 */
export function wrong(
  request: unknown,
  fields: Readonly<Record<string, Kind>>,
): string | undefined {
  if (typeof request !== "object" || request === null) {
    return `the request is ${typeName(request)}, expected an object`;
  }
  for (const name of Object.keys(request)) {
    if (!Object.hasOwn(fields, name)) {
      return `found the unknown field ${JSON.stringify(name)}, expected ${Object.keys(fields).join(", ")}`;
    }
  }
  for (const [name, kind] of Object.entries(fields)) {
    const value: unknown = (request as Record<string, unknown>)[name];
    const optional = kind.endsWith("?");
    const { name: description, is } =
      expected[(optional ? kind.slice(0, -1) : kind) as keyof typeof expected];
    if (value === undefined ? !optional : !is(value)) {
      return `${name} is ${typeName(value)}, expected ${description}`;
    }
  }
  return undefined;
}

function typeName(value: unknown): string {
  switch (typeof value) {
    case "undefined":
      return "missing";
    case "object":
      return value === null ? "null" : `an object of ${value.constructor.name}`;
    default:
      return `of type ${typeof value}`;
  }
}
