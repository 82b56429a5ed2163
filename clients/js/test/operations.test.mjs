// SPDX-License-Identifier: Apache-2.0

import { keyId, rawKey } from "@crypto-broker/client";
import assert from "node:assert/strict";
import {
  createCipheriv,
  createECDH,
  createHash,
  generateKeyPairSync,
  randomBytes,
  verify,
  X509Certificate,
} from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import {
  newClient,
  openssl,
  pair,
  receipts,
  startBroker,
  temporaryFolder,
  utf8,
  within,
} from "./broker.mjs";

const digest = createHash("sha256").update("abc").digest();

for (const exchange of [true, false]) {
  const way = exchange ? "on the shared stream" : "by unary calls";

  test(`every operation works ${way}`, async (t) => {
    const broker = await startBroker(t);
    const client = newClient(t, broker, { exchange, profile: "Default" });

    await t.test("health", async () => {
      assert.equal(await client.health(within), "SERVING");
    });

    await t.test("a digest is the one of the algorithm of the profile", async () => {
      const got = await client.hashData({ input: utf8("abc") }, within);
      assert.deepEqual(Buffer.from(got.digest), digest);
      assert.equal(got.hex, digest.toString("hex"));
      assert.equal(got.algorithm, "sha-256");
      assert.equal(got.deprecation, undefined);
    });

    await t.test("an input of a mebibyte is hashed, and an empty one", async () => {
      for (const input of [randomBytes(1 << 20), Buffer.alloc(0)]) {
        const want = createHash("sha256").update(input).digest("hex");
        assert.equal((await client.hashData({ input }, within)).hex, want);
      }
    });

    await t.test("the buffer of a request is the caller's again at once", async () => {
      const input = utf8("abc");
      const call = client.hashData({ input }, within);
      input.fill(0);
      assert.equal((await call).hex, digest.toString("hex"));
    });

    await t.test("what was encrypted with a key of the broker is decrypted", async () => {
      const profile = "Orders";
      const additionalData = utf8("customer 12");
      const sealed = await client.encryptData(
        { profile, key: keyId("orders"), plaintext: utf8("4711 boxes"), additionalData },
        within,
      );
      assert.equal(sealed.keyId, "orders");
      assert.equal(sealed.algorithm, "aes-gcm");
      const opened = await client.decryptData(
        {
          ...{ profile, key: keyId(sealed.keyId), additionalData },
          ...{ ciphertext: sealed.ciphertext, nonce: sealed.nonce, tag: sealed.tag },
        },
        within,
      );
      assert.equal(Buffer.from(opened.plaintext).toString(), "4711 boxes");
    });

    await t.test("a key and a nonce of the caller make the ciphertext of AES-GCM", async () => {
      const [key, nonce, aad] = [randomBytes(16), randomBytes(12), utf8("aad")];
      const cipher = createCipheriv("aes-128-gcm", key, nonce).setAAD(aad);
      const want = Buffer.concat([cipher.update("plain"), cipher.final()]);
      const got = await client.encryptData(
        {
          ...{ profile: "Own", key: rawKey(key), plaintext: utf8("plain") },
          ...{ nonce, additionalData: aad },
        },
        within,
      );
      assert.deepEqual(Buffer.from(got.ciphertext), want);
      assert.deepEqual(Buffer.from(got.tag), cipher.getAuthTag());
      assert.deepEqual(Buffer.from(got.nonce), nonce);
      assert.equal(got.keyId, "");
    });

    await t.test("a signature is verified by the broker and by Node.js", async () => {
      const input = utf8("order 4711");
      const ownPair = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const key = rawKey(utf8(ownPair.privateKey.export({ type: "pkcs8", format: "pem" })));
      const publicKey = rawKey(utf8(ownPair.publicKey.export({ type: "spki", format: "pem" })));
      const profile = "Contracts";
      for (const format of ["raw", "der", "pem"]) {
        const { signature, algorithm } = await client.signData(
          { profile, key, input, format },
          within,
        );
        assert.equal(algorithm, "ecdsa-with-sha-256");
        const check = { profile, key: publicKey, signature, format };
        assert.equal((await client.verifyData({ ...check, input }, within)).valid, true);
        assert.equal(
          (await client.verifyData({ ...check, input: utf8("x") }, within)).valid,
          false,
        );
        if (format !== "pem") {
          const dsaEncoding = format === "raw" ? "ieee-p1363" : "der";
          assert.ok(verify("sha256", input, { key: ownPair.publicKey, dsaEncoding }, signature));
        }
      }
    });

    await t.test("a key pair of the broker signs", async () => {
      const input = utf8("receipt 1");
      const request = { profile: "Receipts", key: keyId("receipts"), input };
      const { signature } = await client.signData(request, within);
      assert.ok(verify(null, input, receipts.publicKey, signature));
    });

    await t.test("the public key of a key pair is returned in both forms", async () => {
      const got = await client.getPublicKey({ profile: "Pairs", keyId: "pair" }, within);
      assert.deepEqual(
        Buffer.from(got.der),
        pair.publicKey.export({ type: "spki", format: "der" }),
      );
      assert.equal(got.pem, pair.publicKey.export({ type: "spki", format: "pem" }));
    });

    await t.test("data keys are made, wrapped, unwrapped and wrapped again", async () => {
      const [profile, context] = ["Data", utf8("table 3")];
      const made = await client.generateDataKey({ profile, keyId: "orders", context }, within);
      assert.equal(made.dataKey.length, 32);
      const { wrappedKey } = made;
      const unwrapped = await client.unwrapKey({ profile, wrappedKey, context }, within);
      assert.deepEqual(unwrapped.dataKey, made.dataKey);
      const without = { profile, keyId: "orders", withoutDataKey: true };
      assert.equal((await client.generateDataKey(without, within)).dataKey, undefined);
      const dataKey = randomBytes(24);
      const wrapped = await client.wrapKey({ profile, keyId: "orders", dataKey }, within);
      const again = await client.rewrapKey({ profile, wrappedKey: wrapped.wrappedKey }, within);
      assert.equal(again.unchanged, true);
      const batch = await client.unwrapBatch(
        {
          profile,
          keys: [{ wrappedKey: again.wrappedKey }, { wrappedKey }, { wrappedKey, context }],
        },
        within,
      );
      assert.deepEqual(Buffer.from(batch.keys[0].dataKey), dataKey);
      assert.equal(batch.keys[1].dataKey, undefined);
      assert.equal(batch.keys[1].error.code, "INVALID_ARGUMENT");
      assert.equal(batch.keys[1].error.profile, profile);
      assert.deepEqual(batch.keys[2].dataKey, made.dataKey);
    });

    await t.test("a certificate is issued", async (t) => {
      const folder = temporaryFolder(t);
      const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-nodes"];
      openssl(
        folder,
        "req",
        "-x509",
        ...curve,
        "-keyout",
        "ca.key",
        "-out",
        "ca.crt",
        "-subj",
        "/CN=CA",
        "-days",
        "3650",
      );
      openssl(folder, "req", ...curve, "-keyout", "app.key", "-out", "app.csr", "-subj", "/CN=app");
      const read = (name) => readFileSync(join(folder, name), "utf8");
      const notAfter = new Date(Date.now() + 24 * 3600 * 1000);
      const got = await client.signCertificate(
        {
          ...{ profile: "Servers", csr: read("app.csr"), notAfter, subject: "CN=shop" },
          ...{ caPrivateKey: read("ca.key"), caCertificate: read("ca.crt") },
          crlDistributionPoints: ["http://example.com/list.crl"],
        },
        within,
      );
      const certificate = new X509Certificate(got.pem);
      assert.deepEqual(certificate.raw, Buffer.from(got.certificate));
      assert.equal(certificate.subject, "CN=shop");
      assert.equal(Date.parse(certificate.validTo), Math.floor(notAfter / 1000) * 1000);
      assert.ok(certificate.verify(new X509Certificate(read("ca.crt")).publicKey));
    });

    await t.test("a session is agreed on and closed", async () => {
      const profile = "Shop";
      const ecdh = createECDH("prime256v1");
      const made = await client.initSession(
        {
          ...{ profile, keyAgreement: "ECDH_P256", ttlSeconds: 300 },
          clientPublicKey: ecdh.generateKeys("base64"),
          ...{ nonce: "n-1", timestamp: `${Date.now()}` },
        },
        within,
      );
      assert.equal(made.encAlg, "A256GCM");
      assert.equal(made.expiresInSeconds, 300);
      assert.equal(made.algorithm, "session-v1");
      assert.equal(ecdh.computeSecret(made.serverPublicKey, "base64").length, 32);
      await client.closeSession({ profile, sessionId: made.sessionId }, within);
      await client.closeSession({ profile, sessionId: made.sessionId }, within);
    });
  });
}

test("a warning of a deprecated profile is in each result, and told once", async (t) => {
  const told = [];
  const broker = await startBroker(t);
  const client = newClient(t, broker, { onDeprecation: (warning) => told.push(warning) });
  const want = {
    ...{ profile: "Old", replacedBy: "Default", since: "2026-01-01" },
    ...{ removeAfter: "2027-01-01", reason: "It is long." },
  };
  for (let i = 0; i < 2; i++) {
    const got = await client.hashData({ profile: "Old", input: utf8("abc") }, within);
    assert.deepEqual(got.deprecation, want);
  }
  assert.deepEqual(told, [want]);
});

test("the broker gets the trace of the call, or else of the client", async (t) => {
  const broker = await startBroker(t);
  const trace = (traceId) => ({ traceId, spanId: "b7ad6b7169203331", traceFlags: "01" });
  const ids = ["0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736"];
  for (const exchange of [true, false]) {
    const client = newClient(t, broker, { exchange, traceContext: () => trace(ids[0]) });
    const request = { profile: "Default", input: utf8("abc") };
    await client.hashData(request, within);
    await client.hashData(request, { ...within, traceContext: trace(ids[1]) });
  }
  await broker.stop();
  const traces = broker.lines
    .filter((line) => line.includes("audit.chain"))
    .map((line) => JSON.parse(line))
    .filter(({ operation }) => operation === "HashData")
    .map(({ trace_id }) => trace_id);
  assert.deepEqual(traces, [...ids, ...ids]);
});
