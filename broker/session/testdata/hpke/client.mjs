// SPDX-License-Identifier: Apache-2.0

// The client's side of the key agreement of native sessions by another implementation of HPKE. It writes its public key, reads
// the share and the context, all in base64, and writes the secret.

import { createInterface } from "node:readline/promises";
import { CipherSuite, DhkemP256HkdfSha256, ExportOnly, HkdfSha256 } from "@hpke/core";
import { XWing } from "@hpke/hybridkem-x-wing";

const kem = { HPKE_P256: () => new DhkemP256HkdfSha256(), HPKE_XWING: () => new XWing() }[process.argv[2]]();
const suite = new CipherSuite({ kem, kdf: new HkdfSha256(), aead: new ExportOnly() });
const b64 = (data) => Buffer.from(data).toString("base64");
const unb64 = (text) => new Uint8Array(Buffer.from(text, "base64")).buffer;

const own = await suite.kem.generateKeyPair();
console.log(b64(await suite.kem.serializePublicKey(own.publicKey)));
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const enc = unb64((await lines.next()).value);
const info = unb64((await lines.next()).value);
const recipient = await suite.createRecipientContext({ recipientKey: own, enc, info });
console.log(b64(await recipient.export(new TextEncoder().encode("secret").buffer, 32)));
