// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { createReadStream, createWriteStream, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { test } from "node:test";

import {
  newBroker,
  newClient,
  rejected,
  startBroker,
  temporaryFolder,
  utf8,
  within,
} from "./broker.mjs";

/** collect returns the output of a stream. */
async function collect(stream) {
  const parts = [];
  for await (const part of stream) {
    parts.push(part);
  }
  return Buffer.concat(parts);
}

const sizes = [0, 1, 64 << 10, (64 << 10) + 1, 256 << 10, 3_000_000];
const encryption = { profile: "Data", keyId: "orders", context: utf8("table 3") };
const decryption = { profile: "Data", context: utf8("table 3") };

test("inputs of any size are hashed, encrypted and decrypted", async (t) => {
  const client = newClient(t, await startBroker(t));
  for (const size of sizes) {
    await t.test(`${size} bytes`, async () => {
      const input = randomBytes(size);
      const parts = [input.subarray(0, 7), input.subarray(7, 100_007), input.subarray(100_007)];
      const hashed = await client.hashStream(parts, { profile: "Default" }, within);
      assert.equal(hashed.hex, createHash("sha256").update(input).digest("hex"));
      assert.equal(hashed.algorithm, "sha-256");
      const encrypting = client.encryptStream(parts, encryption, within);
      assert.equal(encrypting.result, undefined);
      const encrypted = await collect(encrypting);
      assert.equal(encrypting.result.algorithm, "aes256-gcm-hkdf-64kb");
      assert.deepEqual(await collect(client.decryptStream([encrypted], decryption, within)), input);
    });
  }
});

test("files are encrypted and decrypted in pipelines", async (t) => {
  const client = newClient(t, await startBroker(t));
  const folder = temporaryFolder(t);
  const [plain, sealed, opened] = ["plain", "sealed", "opened"].map((name) => join(folder, name));
  writeFileSync(plain, randomBytes(1_000_000));
  const source = createReadStream(plain);
  await pipeline(client.encryptStream(source, encryption, within), createWriteStream(sealed));
  const encrypted = createReadStream(sealed);
  await pipeline(client.decryptStream(encrypted, decryption, within), createWriteStream(opened));
  assert.deepEqual(readFileSync(opened), readFileSync(plain));
});

test("a stream that was changed or cut does not end well", async (t) => {
  const client = newClient(t, await startBroker(t));
  const encrypted = await collect(client.encryptStream([randomBytes(200_000)], encryption, within));
  const changed = Buffer.from(encrypted);
  changed[changed.length - 1] ^= 1;
  for (const input of [changed, encrypted.subarray(0, encrypted.length - 1)]) {
    const stream = client.decryptStream([input], decryption, within);
    const error = await rejected(collect(stream));
    assert.equal(error.code, "INVALID_ARGUMENT", error.message);
    assert.equal(error.operation, "DecryptStream");
    assert.equal(stream.result, undefined);
  }
});

test("an error of the input is the cause of the error", async (t) => {
  const client = newClient(t, await startBroker(t));
  const cause = new Error("the disk is gone");
  for (const before of [0, 1_000_000]) {
    const source = async function* () {
      yield randomBytes(before);
      throw cause;
    };
    for (const call of [
      client.hashStream(source(), { profile: "Default" }, within),
      collect(client.encryptStream(source(), encryption, within)),
    ]) {
      const error = await rejected(call);
      assert.equal(error.code, "UNKNOWN", error.message);
      assert.equal(error.cause, cause);
    }
  }
});

test("streams whose first chunk is all wait for a broker that starts later", async (t) => {
  const broker = newBroker(t);
  const client = newClient(t, broker);
  const input = [utf8("abc")];
  const hashed = client.hashStream(input, { profile: "Default" }, within);
  const encrypted = collect(client.encryptStream(input, encryption, within));
  assert.equal((await rejected(client.health(within))).code, "UNAVAILABLE");
  await broker.start();
  assert.equal((await hashed).hex, createHash("sha256").update("abc").digest("hex"));
  const output = await collect(client.decryptStream([await encrypted], decryption, within));
  assert.equal(output.toString(), "abc");
});

test("a stream ends when its signal is aborted, and when nobody reads on", async (t) => {
  const client = newClient(t, await startBroker(t));
  const endless = async function* () {
    for (;;) {
      yield randomBytes(50_000);
    }
  };
  const controller = new AbortController();
  const reason = new Error("the user has left");
  const { signal } = controller;
  let parts = 0;
  const error = await rejected(
    (async () => {
      for await (const part of client.encryptStream(endless(), encryption, { signal })) {
        parts += part.length;
        controller.abort(reason);
      }
    })(),
  );
  assert.ok(parts > 0);
  assert.equal(error.cause, reason);
  for await (const part of client.encryptStream(endless(), encryption, within)) {
    assert.ok(part.length > 0);
    break;
  }
  await client.close();
});
