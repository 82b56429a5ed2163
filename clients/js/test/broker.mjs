// SPDX-License-Identifier: Apache-2.0

// Starts brokers for the tests.
import { Client } from "@crypto-broker/client";
import { execFileSync, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** waitLimitMs is far above what anything here takes; only a failure reaches it. */
export const waitLimitMs = 60_000;

/** profiles is what the brokers of the tests serve. */
const profiles = `
- Name: Default
  Audit: {Level: all}
  API:
    HashData: {HashAlg: sha-256}
- Name: Old
  API:
    HashData: {HashAlg: sha-512}
  Deprecation: {ReplacedBy: Default, DeprecatedSince: 2026-01-01, RemoveAfter: 2027-01-01, Reason: It is long.}
- Name: Orders
  API:
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: orders}]}
- Name: Data
  API:
    DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: orders}]}
- Name: Shop
  API:
    Session: {Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}
- Name: Own
  API:
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}
- Name: Receipts
  API:
    SignData: {SignAlg: ed25519, KeyIds: [{Id: receipts}]}
- Name: Pairs
  API:
    DataKeys: {WrapAlgs: [rsa-oaep-sha-256], KeySize: 256, KeyIds: [{Id: pair}]}
- Name: Contracts
  API:
    SignData: {SignAlg: ecdsa, HashAlg: sha-256}
- Name: Servers
  API:
    SignCertificate:
      SignAlg: ecdsa
      HashAlg: sha-384
      KeyConstraints: {Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}, Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}}
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 8760h}
      KeyUsage: [digitalSignature]
      ExtendedKeyUsage: [serverAuth]
`;

/** receipts is the key pair of the profile Receipts, and pair of the profile Pairs. */
export const receipts = generateKeyPairSync("ed25519");
export const pair = generateKeyPairSync("rsa", { modulusLength: 3072 });

/** temporaryFolder returns a new folder that is removed at the end of a test. */
export function temporaryFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), "client-js-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Broker is a broker that can be killed and started again. */
class Broker {
  #folder;
  #process;
  #exited;
  /** The lines of the broker's standard error. */
  lines = [];

  constructor(folder) {
    this.#folder = folder;
    this.socket = join(folder, "s", "crypto-broker-server.sock");
    const files = {
      "profiles/Profiles.yaml": profiles,
      "keys/orders.bin": "k".repeat(32),
      "keys/receipts.key": receipts.privateKey.export({ type: "pkcs8", format: "pem" }),
      "keys/pair.key": pair.privateKey.export({ type: "pkcs8", format: "pem" }),
    };
    for (const directory of ["profiles", "keys"]) {
      mkdirSync(join(folder, directory), { mode: 0o700 });
    }
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(folder, name), text, { mode: 0o600 });
    }
  }

  /** start starts the broker, and waits until it listens unless it is told not to. */
  async start({ wait = true } = {}) {
    const folder = (name) => join(this.#folder, name);
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !name.startsWith("CRYPTO_BROKER_")),
    );
    this.#process = spawn(
      process.env.BROKER_BINARY,
      [
        ...["--profiles-dir", folder("profiles"), "--keys-dir", folder("keys")],
        ...["--socket-dir", folder("s")],
      ],
      { env, stdio: ["ignore", "ignore", "pipe"] },
    );
    this.#exited = once(this.#process, "exit");
    let listening;
    const listens = new Promise((resolve) => {
      listening = resolve;
    });
    createInterface(this.#process.stderr).on("line", (line) => {
      this.lines.push(line);
      if (line.includes('"msg":"listening"')) {
        listening();
      }
    });
    if (wait) {
      const failed = this.#exited.then(() => {
        throw new Error(`the broker ended:\n${this.lines.join("\n")}`);
      });
      await Promise.race([listens, failed]);
      failed.catch(() => undefined);
    }
  }

  /** kill ends the broker as a crash does. */
  async kill() {
    this.#process.kill("SIGKILL");
    await this.#exited;
  }

  /** stop ends the broker in order. It throws if the broker does not end well. */
  async stop() {
    this.#process.kill("SIGTERM");
    const [code, signal] = await this.#exited;
    if (code !== 0) {
      throw new Error(`the broker ended with ${code ?? signal}:\n${this.lines.join("\n")}`);
    }
  }

  /** suspend stops the broker from running, and returns when no thread of it runs any more. */
  async suspend() {
    this.#process.kill("SIGSTOP");
    const threads = `/proc/${this.#process.pid}/task`;
    const stopped = (id) => /^\d+ \(.*\) T /s.test(readFileSync(join(threads, id, "stat"), "utf8"));
    while (!readdirSync(threads).every(stopped)) {
      await new Promise(setImmediate);
    }
  }

  /** resume lets a suspended broker run again. */
  resume() {
    this.#process.kill("SIGCONT");
  }

  get ended() {
    return (
      this.#process === undefined ||
      this.#process.exitCode !== null ||
      this.#process.signalCode !== null
    );
  }
}

/** newBroker returns a broker that does not run yet. It is killed at the end of the test. */
export function newBroker(t) {
  const broker = new Broker(temporaryFolder(t));
  t.after(async () => {
    if (!broker.ended) {
      broker.resume();
      await broker.kill();
    }
  });
  return broker;
}

/** startBroker starts a broker for a test. */
export async function startBroker(t) {
  const broker = newBroker(t);
  await broker.start();
  return broker;
}

/** newClient returns a client that is closed at the end of the test. */
export function newClient(t, broker, options = {}) {
  const client = new Client({ socket: broker.socket, ...options });
  t.after(() => client.close({ signal: AbortSignal.timeout(waitLimitMs) }));
  return client;
}

/** within are the options of a call that must not hang. */
export const within = { timeoutMs: waitLimitMs };

/** utf8 returns the bytes of a text. */
export const utf8 = (text) => Buffer.from(text, "utf8");

/** openssl runs a command of OpenSSL, and returns what it prints. */
export function openssl(folder, ...args) {
  return execFileSync("openssl", args, {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** rejected returns the error of a call that fails. */
export async function rejected(call) {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error("the call succeeded, expected an error");
}
