// SPDX-License-Identifier: Apache-2.0

// A client of the protocol of encrypted sessions by WebCrypto, from fixed inputs: a flat JSON of texts in, and one out.

import { readFileSync } from "node:fs";

const { subtle } = globalThis.crypto;
const given = JSON.parse(readFileSync(0, "utf8"));
const { version, path, nonce, clientId, sequence } = given;
const bytes = (text) => new TextEncoder().encode(text);
const text = (data) => new TextDecoder().decode(data);
const unb64 = (coded) => new Uint8Array(Buffer.from(coded, "base64"));
const b64 = (data) => Buffer.from(data).toString("base64");
const join = (...parts) => new Uint8Array(Buffer.concat(parts.map((part) => (typeof part === "string" ? bytes(part) : part))));

const own = unb64(given.clientPublicKey);
const share = unb64(given.serverPublicKey);
const curve = { name: "ECDH", namedCurve: "P-256" };
const url = (data) => Buffer.from(data).toString("base64url");
const scalar = Buffer.from(given.scalar, "hex");
const jwk = { kty: "EC", crv: "P-256", d: url(scalar), x: url(own.subarray(1, 33)), y: url(own.subarray(33)) };
const shared = new Uint8Array(
  await subtle.deriveBits(
    { name: "ECDH", public: await subtle.importKey("raw", share, curve, false, []) },
    await subtle.importKey("jwk", jwk, curve, false, ["deriveBits"]),
    256,
  ),
);

const hmac = { name: "HMAC", hash: "SHA-256" };
async function mac(key, data) {
  const imported = await subtle.importKey("raw", key.length > 0 ? key : new Uint8Array(32), hmac, false, ["sign"]);
  return new Uint8Array(await subtle.sign(hmac, imported, data));
}
const expand = (secret, ...info) => mac(secret, join(...info, Uint8Array.of(1))); // HKDF-Expand for 32 bytes

// The secret of HPKE (RFC 9180) in base mode, with DHKEM(P-256, HKDF-SHA256) and export-only.
async function hpke(info) {
  const none = new Uint8Array(0);
  const kem = join("KEM", Uint8Array.of(0, 0x10));
  const suite = join("HPKE", Uint8Array.of(0, 0x10, 0, 1, 0xff, 0xff));
  const labeledExtract = (id, salt, label, ikm) => mac(salt, join("HPKE-v1", id, label, ikm));
  const labeledExpand = (id, prk, label, of) => expand(prk, Uint8Array.of(0, 32), "HPKE-v1", id, label, of);
  const prk = await labeledExtract(kem, none, "eae_prk", shared);
  const secret = await labeledExpand(kem, prk, "shared_secret", join(share, own));
  const context = join(Uint8Array.of(0), await labeledExtract(suite, none, "psk_id_hash", none), await labeledExtract(suite, none, "info_hash", info));
  const exporter = await labeledExpand(suite, await labeledExtract(suite, secret, "secret", none), "exp", context);
  return labeledExpand(suite, exporter, "sec", "secret");
}

async function gcm(key, usage) {
  return subtle.importKey("raw", key, "AES-GCM", false, [usage]);
}

const kid = "session:" + given.id;
let key, replyKey, following, aad;
if (version === "native") {
  const info = ["session-hpke-p256", given.profile, "A256GCM", given.id, given.lifetime, given.clientPublicKey].join("\n");
  const secret = await hpke(bytes(info));
  [key, replyKey, following] = [await expand(secret, "request"), await expand(secret, "reply"), await expand(secret, "rekey")];
  aad = ["POST", path, given.timestamp, sequence, kid].join("|");
} else {
  const info = bytes("SESSION|A256GCM|" + (clientId || "AUTH"));
  const secret = await subtle.importKey("raw", shared, "HKDF", false, ["deriveBits"]);
  key = new Uint8Array(await subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: bytes(given.id), info }, secret, 256));
  [replyKey, following] = [key, new Uint8Array(0)];
  aad = (version === "2" ? [given.timestamp, nonce, kid, clientId] : ["POST", path, given.timestamp, nonce, kid]).join("|");
}
const iv = unb64(given.iv);
const sealed = new Uint8Array(
  await subtle.encrypt({ name: "AES-GCM", iv, additionalData: bytes(aad) }, await gcm(key, "encrypt"), bytes(given.plaintext)),
);
const request = { method: "POST", path, kid, encAlg: "A256GCM" };
if (version === "1") {
  const end = sealed.length - 16;
  const body = b64(bytes(b64(sealed.subarray(0, end))));
  Object.assign(request, { iv: b64(iv), tag: b64(sealed.subarray(end)), aad: b64(bytes(aad)), nonce, timestamp: given.timestamp, body });
} else if (version === "2") {
  Object.assign(request, { idempotencyKey: given.timestamp + "." + nonce, clientId, body: b64(join(iv, sealed)) });
} else {
  Object.assign(request, { timestamp: given.timestamp, sequence, body: b64(join(iv, sealed)) });
}

let whole = unb64(given.replyBody);
let replyAAD = ["REPLY", path, sequence, kid].join("|");
if (version === "1") {
  whole = join(unb64(given.replyIV), unb64(text(whole)), unb64(given.replyTag));
  replyAAD = ["200", path, given.replyTimestamp, given.replyNonce, kid].join("|");
  if (text(unb64(given.replyAAD)) !== replyAAD) throw new Error("another X-AAD");
} else if (version === "2") {
  replyAAD = [...given.replyIdempotencyKey.split("."), kid, clientId].join("|");
}
const opened = await subtle.decrypt(
  { name: "AES-GCM", iv: whole.subarray(0, 12), additionalData: bytes(replyAAD) },
  await gcm(replyKey, "decrypt"),
  whole.subarray(12),
);

console.log(JSON.stringify({ ...request, key: b64(key), replyKey: b64(replyKey), nextSecret: b64(following), opened: text(opened) }));
