// SPDX-License-Identifier: Apache-2.0

// The driver of the JavaScript client for the cases of the contract. README.md two directories
// above describes drivers.
import { Client, CryptoBrokerError, keyId, rawKey } from "../../../../clients/js/dist/esm.mjs";
import { createInterface } from "node:readline";

const client = new Client({ exchange: !process.argv.includes("--unary"), timeoutMs: 60_000 });

const octets = (text = "") => Buffer.from(text, "base64");
const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const keyOf = (source = {}) =>
  "rawKey" in source ? rawKey(octets(source.rawKey)) : keyId(source.keyId ?? "");
const timeOf = (seconds) => (seconds ? new Date(Number(seconds) * 1000) : undefined);

function signing({ keySource = {}, signatureFormat = "SIGNATURE_FORMAT_UNSPECIFIED" }) {
  const [key, postQuantumKey] = keySource.componentKeys?.keys ?? [keySource.single];
  const format = signatureFormat.replace("SIGNATURE_FORMAT_", "").toLowerCase();
  return {
    key: keyOf(key),
    postQuantumKey: postQuantumKey && keyOf(postQuantumKey),
    format: format === "unspecified" ? undefined : format,
  };
}

/** common returns what replies have in common. */
function common({ algorithm, deprecation: warning }) {
  return {
    descriptor: algorithm ? { algorithm } : undefined,
    metadata: warning && {
      deprecation: {
        profile: warning.profile,
        replacedBy: warning.replacedBy,
        deprecatedSince: warning.since,
        removeAfter: warning.removeAfter,
        reason: warning.reason,
      },
    },
  };
}

async function streamed(stream) {
  const parts = [];
  for await (const part of stream) {
    parts.push(part);
  }
  return { ...common(stream.result), output: base64(Buffer.concat(parts)) };
}

/** operations make a call, and return the reply. */
const operations = {
  Health: async () => ({ status: await client.health() }),
  HashData: async ({ profile, input }) => {
    const result = await client.hashData({ profile, input: octets(input) });
    return { ...common(result), hashValueRaw: base64(result.digest) };
  },
  HashStream: async ({ profile, input }) => {
    const result = await client.hashStream([octets(input)], { profile });
    return { ...common(result), hashValueRaw: base64(result.digest) };
  },
  EncryptStream: ({ profile, keyId = "", context, input }) =>
    streamed(client.encryptStream([octets(input)], { profile, keyId, context: octets(context) })),
  DecryptStream: ({ profile, context, input }) =>
    streamed(client.decryptStream([octets(input)], { profile, context: octets(context) })),
  SignCertificate: async (r) => {
    const result = await client.signCertificate({
      profile: r.profile,
      csr: r.csr ?? "",
      caPrivateKey: r.caPrivateKey,
      caCertificate: r.caCert,
      notBefore: timeOf(r.validNotBefore),
      notAfter: timeOf(r.validNotAfter),
      subject: r.subject,
      crlDistributionPoints: r.crlDistributionPoints,
    });
    return { ...common(result), der: base64(result.certificate) };
  },
  EncryptData: async ({ profile, keySource, plaintext, encryptMetadata = {} }) => {
    const result = await client.encryptData({
      profile,
      key: keyOf(keySource),
      plaintext: octets(plaintext),
      nonce: octets(encryptMetadata.nonce),
      additionalData: octets(encryptMetadata.aad),
    });
    const { nonce, tag } = result;
    const cipherMetadata = { nonce: base64(nonce), tag: base64(tag), keyId: result.keyId };
    return { ...common(result), ciphertext: base64(result.ciphertext), cipherMetadata };
  },
  DecryptData: async ({ profile, keySource, ciphertext, decryptMetadata = {} }) => {
    const result = await client.decryptData({
      profile,
      key: keyOf(keySource),
      ciphertext: octets(ciphertext),
      nonce: octets(decryptMetadata.nonce),
      tag: octets(decryptMetadata.tag),
      additionalData: octets(decryptMetadata.aad),
    });
    return { ...common(result), plaintext: base64(result.plaintext) };
  },
  SignData: async (r) => {
    const result = await client.signData({
      profile: r.profile,
      input: octets(r.input),
      ...signing(r),
    });
    return { ...common(result), signature: base64(result.signature) };
  },
  VerifyData: async (r) => {
    const { profile, input, signature } = r;
    const bytes = { input: octets(input), signature: octets(signature) };
    const result = await client.verifyData({ profile, ...bytes, ...signing(r) });
    return { ...common(result), valid: result.valid };
  },
  GenerateDataKey: async ({ profile, keyId = "", context, withoutDataKey }) => {
    const request = { profile, keyId, context: octets(context), withoutDataKey };
    const result = await client.generateDataKey(request);
    const dataKey = result.dataKey && base64(result.dataKey);
    return { ...common(result), dataKey, wrappedKey: base64(result.wrappedKey) };
  },
  WrapKey: async ({ profile, keyId = "", context, dataKey }) => {
    const bytes = { context: octets(context), dataKey: octets(dataKey) };
    const result = await client.wrapKey({ profile, keyId, ...bytes });
    return { ...common(result), wrappedKey: base64(result.wrappedKey) };
  },
  UnwrapKey: async ({ profile, wrappedKey, context }) => {
    const bytes = { wrappedKey: octets(wrappedKey), context: octets(context) };
    const result = await client.unwrapKey({ profile, ...bytes });
    return { ...common(result), dataKey: base64(result.dataKey) };
  },
  UnwrapBatch: async ({ profile, keys = [] }) => {
    const wrapped = keys.map(({ wrappedKey, context }) => ({
      wrappedKey: octets(wrappedKey),
      context: octets(context),
    }));
    const result = await client.unwrapBatch({ profile, keys: wrapped });
    const results = result.keys.map(({ dataKey, error }) =>
      error ? { code: codes[error.code], message: error.reason } : { dataKey: base64(dataKey) },
    );
    return { ...common(result), results };
  },
  RewrapKey: async ({ profile, wrappedKey, context, keyId }) => {
    const bytes = { wrappedKey: octets(wrappedKey), context: octets(context) };
    const result = await client.rewrapKey({ profile, keyId, ...bytes });
    return {
      ...common(result),
      wrappedKey: base64(result.wrappedKey),
      unchanged: result.unchanged,
    };
  },
  GetPublicKey: async ({ profile, keyId = "" }) => {
    const result = await client.getPublicKey({ profile, keyId });
    return { ...common(result), der: base64(result.der), pem: result.pem, version: result.version };
  },
  InitSession: async ({ ttlSec, ...texts }) => {
    const result = await client.initSession({ ...texts, ttlSeconds: ttlSec });
    return { ...result, ...common(result), expiresInSec: result.expiresInSeconds };
  },
  OpenRequest: async (r) => {
    const result = await client.openRequest({ ...r, body: octets(r.body) });
    return { ...result, ...common(result), plaintext: base64(result.plaintext) };
  },
  SealReply: async (r) => {
    const result = await client.sealReply({ ...r, plaintext: octets(r.plaintext) });
    return { ...result, ...common(result), body: base64(result.body) };
  },
  RekeySession: async (r) => {
    const result = await client.rekeySession({ ...r, body: octets(r.body) });
    return { ...result, ...common(result) };
  },
  CloseSession: (r) => client.closeSession(r),
};

/** codes are the numbers of the codes that a key of a batch can have. */
const codes = {
  INVALID_ARGUMENT: 3,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  FAILED_PRECONDITION: 9,
  UNAVAILABLE: 14,
};

for await (const line of createInterface({ input: process.stdin })) {
  const { operation, request } = JSON.parse(line);
  let answer;
  try {
    const make = operations[operation];
    answer = make === undefined ? { unsupported: true } : { reply: await make(request ?? {}) };
  } catch (error) {
    if (!(error instanceof CryptoBrokerError)) {
      throw error;
    }
    const { code, operation: called, profile, reason: message } = error;
    answer = { error: { code, operation: called, profile, message } };
  }
  console.log(JSON.stringify(answer));
}
await client.close();
