// SPDX-License-Identifier: Apache-2.0
//
// Encrypts and decrypts files with OpenTDF's client for JavaScript:
// client.mjs encrypt|decrypt proof|bearer SERVICE ISSUER FROM TO
import { readFile, writeFile } from "node:fs/promises";

// The client loads a module for browsers, which looks for this and does not use it here.
globalThis.document = { documentElement: { style: {} } };
const { AuthProviders, DecryptParamsBuilder, TDF3Client } = await import("@opentdf/client");

const [verb, token, kasEndpoint, oidcOrigin, from, to] = process.argv.slice(2);
const authProvider = await AuthProviders.clientSecretAuthProvider({ clientId: "reader", clientSecret: "secret", oidcOrigin });
// The provider for client credentials does not pass this setting on.
authProvider.oidcAuth.config.dpopEnabled = token === "proof";
const client = new TDF3Client({ authProvider, kasEndpoint, dpopEnabled: token === "proof" });

const input = await readFile(from);
let output;
if (verb === "encrypt") {
  const source = new ReadableStream({
    start(controller) {
      controller.enqueue(new Uint8Array(input));
      controller.close();
    },
  });
  output = await client.encrypt({ source, offline: true });
} else {
  output = await client.decrypt(new DecryptParamsBuilder().withBufferSource(input).build());
}
await writeFile(to, await output.toBuffer());
