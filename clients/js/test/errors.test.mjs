// SPDX-License-Identifier: Apache-2.0

import { Client, CryptoBrokerError, keyId, rawKey } from "@crypto-broker/client";
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";

import { newClient, rejected, startBroker, utf8, within } from "./broker.mjs";

const input = utf8("abc");

const refused = {
  "a profile that the broker does not have": {
    call: (c) => c.hashData({ profile: "Nobody's", input }, within),
    want: [
      "INVALID_ARGUMENT",
      "HashData",
      "Nobody's",
      `HashData with profile "Nobody's": no profile of this name is served`,
    ],
  },
  "an operation that the profile does not offer": {
    call: (c) => c.signData({ profile: "Default", key: keyId("orders"), input }, within),
    want: [
      "FAILED_PRECONDITION",
      "SignData",
      "Default",
      'SignData with profile "Default": the profile does not offer this operation',
    ],
  },
  "a ciphertext that does not authenticate": {
    call: (c) =>
      c.decryptData(
        {
          ...{ profile: "Own", key: rawKey(randomBytes(16)), ciphertext: input },
          ...{ nonce: randomBytes(12), tag: randomBytes(16) },
        },
        within,
      ),
    want: [
      "INVALID_ARGUMENT",
      "DecryptData",
      "Own",
      'DecryptData with profile "Own": ciphertext does not authenticate with this key, nonce, aad and tag',
    ],
  },
  "a key that the profile does not list": {
    call: (c) =>
      c.encryptData({ profile: "Orders", key: keyId("receipts"), plaintext: input }, within),
    want: ["PERMISSION_DENIED", "EncryptData", "Orders", undefined],
  },
  "a session that there is not": {
    call: (c) =>
      c.openRequest(
        {
          ...{ profile: "Shop", method: "POST", path: "/", kid: "session:x" },
          ...{
            encAlg: "A256GCM",
            body: input,
            nonce: "n",
            timestamp: "1",
            iv: "",
            tag: "",
            aad: "",
          },
        },
        within,
      ),
    want: [undefined, "OpenRequest", "Shop", undefined],
  },
  "a request that is larger than any broker accepts": {
    call: (c) => c.hashData({ profile: "Default", input: Buffer.alloc(4 << 20) }, within),
    want: [
      "INVALID_ARGUMENT",
      "HashData",
      "Default",
      'HashData with profile "Default": the request has 4194320 bytes, expected at most 4194304',
    ],
  },
  "an input of another type": {
    call: (c) => c.hashData({ profile: "Default", input: "abc" }, within),
    want: [
      "INVALID_ARGUMENT",
      "HashData",
      "",
      "HashData: input is of type string, expected a Uint8Array",
    ],
  },
  "a field that is missing": {
    call: (c) => c.encryptData({ plaintext: input }, within),
    want: [
      "INVALID_ARGUMENT",
      "EncryptData",
      "",
      "EncryptData: key is missing, expected keyId(…) or rawKey(…)",
    ],
  },
  "a field that the request does not have": {
    call: (c) => c.hashData({ inptu: input, input }, within),
    want: [
      "INVALID_ARGUMENT",
      "HashData",
      "",
      'HashData: found the unknown field "inptu", expected profile, input',
    ],
  },
};

for (const exchange of [true, false]) {
  test(`errors have code, operation, profile and reason ${exchange ? "on the shared stream" : "of unary calls"}`, async (t) => {
    const broker = await startBroker(t);
    const client = newClient(t, broker, { exchange });
    for (const [name, { call, want }] of Object.entries(refused)) {
      await t.test(name, async () => {
        const error = await rejected(call(client));
        assert.ok(error instanceof CryptoBrokerError, error.stack);
        const [code, operation, profile, reason] = want;
        assert.equal(error.code, code ?? error.code, error.message);
        assert.equal(error.operation, operation);
        assert.equal(error.profile, profile);
        assert.equal(error.reason, reason ?? error.reason);
        assert.equal(error.message, `crypto broker: ${error.code}: ${error.reason}`);
        assert.equal(error.name, "CryptoBrokerError");
        assert.equal(error.retryBudgetSpent, false);
        assert.equal(error.clientClosed, false);
      });
    }
    await t.test("and the client still works", async () => {
      await client.hashData({ profile: "Default", input }, within);
    });
  });
}

const options = {
  "an empty socket": [{ socket: "" }, /the path of the socket is empty, expected a path/],
  "a negative retry budget": [
    { retryBudgetMs: -1 },
    /retryBudgetMs is -1, expected 0 or a positive/,
  ],
  "a timeout that is no number": [{ timeoutMs: NaN }, /timeoutMs is NaN, expected 0 to 2147483647/],
  "an option that there is not": [{ sokcet: "/s" }, /found the unknown option "sokcet", expected/],
};

for (const [name, [given, message]] of Object.entries(options)) {
  test(`a client is not made with ${name}`, () => {
    assert.throws(() => new Client(given), { name: "TypeError", message });
  });
}
