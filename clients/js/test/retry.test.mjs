// SPDX-License-Identifier: Apache-2.0

import { keyId } from "@crypto-broker/client";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { newBroker, newClient, rejected, startBroker, utf8, within } from "./broker.mjs";

const sha256 = (input) => createHash("sha256").update(input).digest("hex");
const request = { profile: "Default", input: utf8("abc") };

/** load makes calls of several kinds until it is ended, and fails if one of them is lost. */
async function load(client) {
  const sealed = await client.encryptData(
    { profile: "Orders", key: keyId("orders"), plaintext: utf8("boxes") },
    within,
  );
  const { ciphertext, nonce, tag } = sealed;
  const large = Buffer.alloc(200_000, 7);
  const kinds = [
    async (n) => {
      const input = utf8(`input ${n}`);
      const got = await client.hashData({ profile: "Default", input }, within);
      assert.equal(got.hex, sha256(input));
    },
    async () => {
      const got = await client.decryptData(
        { profile: "Orders", key: keyId("orders"), ciphertext, nonce, tag },
        within,
      );
      assert.equal(Buffer.from(got.plaintext).toString(), "boxes");
    },
    // Too large for the shared stream.
    async () => {
      const got = await client.hashData({ profile: "Default", input: large }, within);
      assert.equal(got.hex, sha256(large));
    },
  ];
  let calls = 0;
  let failed;
  let going = true;
  const callers = Array.from({ length: 9 }, async (_, i) => {
    try {
      for (let n = 0; going && failed === undefined; n++) {
        await kinds[i % kinds.length](n);
        calls++;
      }
    } catch (error) {
      failed = error;
    }
  });
  return {
    /** Waits until more calls have ended. */
    async more(count) {
      for (const before = calls; calls < before + count && failed === undefined;) {
        await client.hashData(request, within);
      }
    },
    /** Ends the calls, and throws if one of them was lost. */
    async end() {
      going = false;
      await Promise.all(callers);
      if (failed !== undefined) {
        throw failed;
      }
    },
  };
}

for (const exchange of [true, false]) {
  const way = exchange ? "on the shared stream" : "by unary calls";

  test(`no call is lost while the broker is killed and restarted, ${way}`, async (t) => {
    const broker = await startBroker(t);
    const calls = await load(newClient(t, broker, { exchange }));
    for (let kill = 0; kill < 4; kill++) {
      await calls.more(50);
      await broker.kill();
      await broker.start({ wait: false });
    }
    await calls.more(50);
    await calls.end();
  });

  test(`no call is lost while the broker is replaced in order, ${way}`, async (t) => {
    const broker = await startBroker(t);
    const calls = await load(newClient(t, broker, { exchange }));
    for (let stop = 0; stop < 3; stop++) {
      await calls.more(50);
      await broker.stop();
      await broker.start({ wait: false });
    }
    await calls.more(50);
    await calls.end();
  });

  test(`a call waits for a broker that starts later, ${way}`, async (t) => {
    const broker = newBroker(t);
    const client = newClient(t, broker, { exchange });
    const call = client.hashData(request, within);
    assert.equal((await rejected(client.health(within))).code, "UNAVAILABLE");
    await broker.start();
    assert.equal((await call).hex, sha256("abc"));
  });

  test(`a call gives up when its retry budget is spent, ${way}`, async (t) => {
    const client = newClient(t, newBroker(t), { exchange, retryBudgetMs: 100 });
    const error = await rejected(client.hashData(request, within));
    assert.equal(error.code, "UNAVAILABLE");
    assert.equal(error.retryBudgetSpent, true);
    assert.match(
      error.reason,
      /^HashData with profile "Default": .* \(given up after \d+ ms in (1 try|\d+ tries)\)$/,
    );
  });

  test(`with a retry budget of 0 there is one try, ${way}`, async (t) => {
    const client = newClient(t, newBroker(t), { exchange, retryBudgetMs: 0 });
    const error = await rejected(client.hashData(request, within));
    assert.match(error.reason, /\(given up after \d+ ms in 1 try\)$/);
  });

  test(`a call ends at its deadline, ${way}`, async (t) => {
    const broker = await startBroker(t);
    const client = newClient(t, broker, { exchange });
    await client.hashData(request, within);
    await broker.suspend();
    const error = await rejected(client.hashData(request, { timeoutMs: 50 }));
    assert.equal(error.code, "DEADLINE_EXCEEDED");
    assert.match(error.reason, /there was no reply within the time for the call/);
    const aborted = client.hashData(request, { signal: AbortSignal.timeout(50) });
    assert.equal((await rejected(aborted)).code, "DEADLINE_EXCEEDED");
    broker.resume();
    assert.equal((await client.hashData(request, within)).hex, sha256("abc"));
  });

  test(`a timeout may have a part of a millisecond, ${way}`, async (t) => {
    const client = newClient(t, await startBroker(t), { exchange });
    const calls = [59_999.5, 60_000, 60_000.25].map((timeoutMs) =>
      client.hashData(request, { timeoutMs }),
    );
    for (const got of await Promise.all(calls)) {
      assert.equal(got.hex, sha256("abc"));
    }
  });

  test(`a call ends at its deadline while it waits for the next try, ${way}`, async (t) => {
    const client = newClient(t, newBroker(t), { exchange });
    const error = await rejected(client.hashData(request, { timeoutMs: 50 }));
    assert.equal(error.code, "DEADLINE_EXCEEDED");
  });

  test(`a call ends when its signal is aborted, ${way}`, async (t) => {
    const broker = await startBroker(t);
    const client = newClient(t, broker, { exchange });
    await client.hashData(request, within);
    await broker.suspend();
    const controller = new AbortController();
    const call = rejected(client.hashData(request, { signal: controller.signal }));
    const reason = new Error("the user has left");
    setImmediate(() => controller.abort(reason));
    const error = await call;
    assert.equal(error.code, "CANCELLED");
    assert.equal(error.cause, reason);
    const late = await rejected(client.hashData(request, { signal: controller.signal }));
    assert.equal(late.cause, reason);
    broker.resume();
    assert.equal((await client.hashData(request, within)).hex, sha256("abc"));
  });

  test(`close waits for calls, and refuses new ones, ${way}`, async (t) => {
    const broker = await startBroker(t);
    const client = newClient(t, broker, { exchange });
    const call = client.hashData(request, within);
    const closed = client.close();
    const refused = await rejected(client.hashData(request, within));
    assert.equal(refused.code, "CANCELLED");
    assert.equal(refused.clientClosed, true);
    assert.equal((await call).hex, sha256("abc"));
    await closed;
    await client[Symbol.asyncDispose]();
  });

  test(`close ends calls when its signal is aborted, ${way}`, async (t) => {
    const broker = await startBroker(t);
    const client = newClient(t, broker, { exchange });
    await client.hashData(request, within);
    await broker.suspend();
    const call = rejected(client.hashData(request, within));
    const closed = await rejected(client.close({ signal: AbortSignal.timeout(50) }));
    assert.equal(closed.name, "TimeoutError");
    assert.equal((await call).clientClosed, true);
  });
}

test("more calls than the stream takes at one time all get their replies", async (t) => {
  const broker = await startBroker(t);
  const client = newClient(t, broker);
  const inputs = Array.from({ length: 3000 }, (_, i) => utf8(`input ${i}`));
  const got = await Promise.all(
    inputs.map((input) => client.hashData({ profile: "Default", input }, within)),
  );
  assert.deepEqual(
    got.map(({ hex }) => hex),
    inputs.map(sha256),
  );
});

test("of more calls than the stream takes, aborted ones leave their places to others", async (t) => {
  const broker = await startBroker(t);
  const client = newClient(t, broker);
  await client.hashData(request, within);
  await broker.suspend();
  const controller = new AbortController();
  const { signal } = controller;
  const calls = Array.from({ length: 3000 }, () => rejected(client.hashData(request, { signal })));
  setImmediate(() => controller.abort());
  for (const error of await Promise.all(calls)) {
    assert.equal(error.code, "CANCELLED");
  }
  broker.resume();
  const after = Array.from({ length: 1500 }, () => client.hashData(request, within));
  for (const { hex } of await Promise.all(after)) {
    assert.equal(hex, sha256("abc"));
  }
});
