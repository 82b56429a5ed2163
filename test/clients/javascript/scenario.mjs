// SPDX-License-Identifier: Apache-2.0

// Calls every method of a released client. Reads what to send from standard
// input and prints what came back, both as JSON, with bytes in base64. What is
// right is for the test to say.
import { Buffer } from "node:buffer";
import { text } from "node:stream/consumers";
import {
  CryptoBrokerClient,
  HashDataOutputFormat,
  SignCertificateOutputFormat,
} from "@open-crypto-broker/cryptobroker-client";

const given = JSON.parse(await text(process.stdin));
const bytes = (base64) => Buffer.from(base64, "base64");
const base64 = (value) => (value === undefined ? undefined : Buffer.from(value).toString("base64"));

const client = await CryptoBrokerClient.NewLibrary();
const metadata = {
  id: "4f6b4711",
  traceContext: {
    traceId: "0af7651916cd43dd8448eb211c80319c",
    spanId: "b7ad6b7169203331",
    traceFlags: "01",
    traceState: "vendor=1",
    correlationId: "order 4711",
  },
};

const hash = (profile, outputFormat, input) =>
  client.hashData({ profile, input, outputFormat, metadata });
const sign = (outputFormat, more = {}) =>
  client.signCertificate({
    profile: "Default",
    csr: given.csr,
    caPrivateKey: given.caPrivateKey,
    caCert: given.caCert,
    outputFormat,
    metadata,
    ...more,
  });
const encrypt = (keySource, plaintext, more = {}) =>
  client.encryptData({
    profile: "FIPS-140-3-256bit",
    keySource,
    plaintext,
    encryptMetadata: { nonce: bytes(given.nonce), aad: bytes(given.aad) },
    metadata,
    ...more,
  });
const decrypt = (keySource, sealed, tag = sealed.cipherMetadata.tag, profile = "FIPS-140-3-256bit") =>
  client.decryptData({
    profile,
    keySource,
    ciphertext: sealed.ciphertext,
    decryptMetadata: { nonce: sealed.cipherMetadata.nonce, tag, aad: sealed.cipherMetadata.aad },
    metadata,
  });

// refusal tells the code and the message of a call that must fail.
async function refusal(call) {
  try {
    await call;
  } catch (error) {
    return { code: error.code, message: error.details };
  }
  return { code: 0, message: "the call succeeded" };
}

const raw = { rawKey: bytes(given.key) };
const input = bytes(given.input);
const large = Buffer.alloc(1 << 20, 7);

const hex = await hash("Default", HashDataOutputFormat.HEX, input);
const sealed = await encrypt(raw, input);
const whole = await encrypt(raw, input, { profile: "Tags as released" });
const orders = { keyId: "orders" };
const byId = await encrypt(orders, large, { profile: "Orders" });
const benchmark = await client.benchmarkData({ metadata }).then(
  (reply) => reply.benchmarkResults,
  (error) => JSON.stringify({ code: error.code }),
);
const pem = await sign(SignCertificateOutputFormat.PEM);
const der = await sign(SignCertificateOutputFormat.DER, {
  subject: given.subject,
  validNotBefore: BigInt(given.notBefore),
  validNotAfter: BigInt(given.notAfter),
  crlDistributionPoints: [given.crl],
});
const deprecated = await hash("Old", HashDataOutputFormat.HEX, input);

const tampered = Buffer.from(sealed.cipherMetadata.tag);
tampered[0] ^= 1;

// More calls that fail than the client's circuit breaker bears of those that it
// counts.
for (let i = 0; i < 10; i++) {
  await refusal(hash("Nobody's", HashDataOutputFormat.HEX, input));
}

console.log(
  JSON.stringify({
    health: (await client.healthData()).status,
    hex: hex.hashValueHex,
    raw: base64((await hash("Default", HashDataOutputFormat.RAW, input)).hashValueRaw),
    large: (await hash("Default", HashDataOutputFormat.HEX, large)).hashValueHex,
    algorithm: hex.hashAlgorithm,
    metadata: hex.metadata,
    descriptor: hex.descriptor,
    pem: pem.pem,
    der: base64(der.der),
    ciphertext: base64(sealed.ciphertext),
    tag: base64(sealed.cipherMetadata.tag),
    wholeTag: base64(whole.cipherMetadata.tag),
    servedAfterRefusals: (await hash("Default", HashDataOutputFormat.HEX, input)).hashValueHex,
    opened: base64((await decrypt(raw, sealed)).plaintext),
    openedById: base64((await decrypt(orders, byId, undefined, "Orders")).plaintext) === base64(large),
    keyId: byId.cipherMetadata.keyId,
    deprecation: deprecated.metadata.deprecation,
    benchmark,
    refusals: {
      profile: await refusal(hash("Nobody's", HashDataOutputFormat.HEX, input)),
      operation: await refusal(encrypt(raw, input, { profile: "Default" })),
      key: await refusal(encrypt({ rawKey: bytes(given.key).subarray(0, 16) }, input)),
      keyId: await refusal(encrypt({ keyId: "nobody" }, input, { profile: "Orders" })),
      unlisted: await refusal(encrypt(orders, input)),
      tag: await refusal(decrypt(raw, sealed, tampered)),
      csr: await refusal(sign(SignCertificateOutputFormat.PEM, { csr: given.caCert })),
    },
  }),
);
process.exit(0); // the client has no way to close its connection
