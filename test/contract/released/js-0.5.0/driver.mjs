// SPDX-License-Identifier: Apache-2.0

// The driver of a released client for the cases of the contract. README.md two directories above
// describes drivers.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const packages = createRequire(
  new URL("../../../clients/javascript/package.json", import.meta.url),
);
const name = packages.resolve("@open-crypto-broker/cryptobroker-client");
const {
  CryptoBrokerClient,
  HashDataOutputFormat,
  SignCertificateOutputFormat,
} = await import(pathToFileURL(name).href);

const client = await CryptoBrokerClient.NewLibrary();

const octets = (text = "") => Buffer.from(text, "base64");
const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const keyOf = (source = {}) =>
  "rawKey" in source
    ? { rawKey: octets(source.rawKey) }
    : { keyId: source.keyId ?? "" };
const secondsOf = (seconds) => (seconds ? BigInt(seconds) : undefined);

/** common returns what replies have in common. */
const common = ({ metadata, descriptor }) => ({
  descriptor,
  metadata: metadata && { deprecation: metadata.deprecation },
});

/** operations make a call, and return the reply. */
const operations = {
  Health: async () => ({
    status:
      (await client.healthData()).status === 1 ? "SERVING" : "NOT_SERVING",
  }),
  HashData: async ({ profile = "", input }) => {
    const outputFormat = HashDataOutputFormat.RAW;
    const result = await client.hashData({
      profile,
      input: octets(input),
      outputFormat,
    });
    return { ...common(result), hashValueRaw: base64(result.hashValueRaw) };
  },
  SignCertificate: async (r) => {
    const result = await client.signCertificate({
      profile: r.profile ?? "",
      csr: r.csr ?? "",
      caPrivateKey: r.caPrivateKey ?? "",
      caCert: r.caCert ?? "",
      outputFormat: SignCertificateOutputFormat.DER,
      validNotBefore: secondsOf(r.validNotBefore),
      validNotAfter: secondsOf(r.validNotAfter),
      subject: r.subject,
      crlDistributionPoints: r.crlDistributionPoints ?? [],
    });
    return { ...common(result), der: base64(result.der) };
  },
  EncryptData: async ({
    profile = "",
    keySource,
    plaintext,
    encryptMetadata = {},
  }) => {
    const result = await client.encryptData({
      profile,
      keySource: keyOf(keySource),
      plaintext: octets(plaintext),
      encryptMetadata: {
        nonce: octets(encryptMetadata.nonce),
        aad: octets(encryptMetadata.aad),
      },
    });
    const { nonce, tag, keyId } = result.cipherMetadata;
    return {
      ...common(result),
      ciphertext: base64(result.ciphertext),
      cipherMetadata: { nonce: base64(nonce), tag: base64(tag), keyId },
    };
  },
  DecryptData: async ({
    profile = "",
    keySource,
    ciphertext,
    decryptMetadata = {},
  }) => {
    const result = await client.decryptData({
      profile,
      keySource: keyOf(keySource),
      ciphertext: octets(ciphertext),
      decryptMetadata: {
        nonce: octets(decryptMetadata.nonce),
        tag: octets(decryptMetadata.tag),
        aad: octets(decryptMetadata.aad),
      },
    });
    return { ...common(result), plaintext: base64(result.plaintext) };
  },
};

/** codes are the names of the codes of gRPC that brokers use. */
const codes = {
  3: "INVALID_ARGUMENT",
  5: "NOT_FOUND",
  7: "PERMISSION_DENIED",
  8: "RESOURCE_EXHAUSTED",
  9: "FAILED_PRECONDITION",
  12: "UNIMPLEMENTED",
  13: "INTERNAL",
  14: "UNAVAILABLE",
};

for await (const line of createInterface({ input: process.stdin })) {
  const { operation, request = {} } = JSON.parse(line);
  let answer;
  try {
    const make = operations[operation];
    answer =
      make === undefined
        ? { unsupported: true }
        : { reply: await make(request) };
  } catch (error) {
    if (error instanceof TypeError) {
      answer = { refused: error.message };
    } else if (typeof error.code === "number") {
      // The error has no operation and no profile of its own.
      const code = codes[error.code] ?? String(error.code);
      const { profile = "" } = request;
      answer = { error: { code, operation, profile, message: error.details } };
    } else {
      throw error;
    }
  }
  console.log(JSON.stringify(answer));
}
process.exit(0); // the client has no way to close its connection
