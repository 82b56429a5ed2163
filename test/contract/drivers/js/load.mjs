// SPDX-License-Identifier: Apache-2.0

// Makes loads with the JavaScript client and with @grpc/grpc-js. README.md two directories above
// describes loads.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { Client } from "../../../../clients/js/dist/esm.mjs";

const require = createRequire(
  new URL("../../../../clients/js/package.json", import.meta.url),
);
const grpc = require("@grpc/grpc-js");
const messages = require("./dist/messages/cryptobroker/v1/service.js");

const profile = "Default";
const inputSize = 32;

const plain = new grpc.Client(
  `unix:${process.env.CRYPTO_BROKER_SOCKET}`,
  grpc.credentials.createInsecure(),
);
const unary = new Client({ exchange: false });
const exchange = new Client();

/** bare makes a call with @grpc/grpc-js alone. */
function bare(method, encode, decode, request) {
  return new Promise((resolve, reject) => {
    plain.makeUnaryRequest(method, encode, decode, request, (error, reply) =>
      error === null ? resolve(reply) : reject(error),
    );
  });
}

const hash = (client) =>
  client.hashData({ profile, input: new Uint8Array(inputSize) });

/** calls make one call each. */
const calls = {
  "bare HashData": () =>
    bare(
      "/cryptobroker.v1.CryptoService/HashData",
      (request) =>
        Buffer.from(messages.HashDataRequest.encode(request).finish()),
      (reply) => messages.HashDataResponse.decode(reply),
      {
        profile,
        input: new Uint8Array(inputSize),
        outputFormat: messages.HashOutputFormat.HASH_OUTPUT_FORMAT_RAW,
      },
    ),
  "bare Health": () =>
    bare(
      "/grpc.health.v1.Health/Check",
      () => Buffer.alloc(0),
      (reply) => reply,
      {},
    ),
  "unary HashData": () => hash(unary),
  "exchange HashData": () => hash(exchange),
  "unary Health": () => unary.health(),
};

/** percentile returns a percentile of sorted times in milliseconds, in microseconds. */
const percentile = (sorted, percent) =>
  sorted.length > 0
    ? sorted[Math.floor((sorted.length * percent) / 100)] * 1000
    : 0;

/** measure makes a load: each caller begins its next call when it has its reply. */
async function measure(call, { callers, millis }) {
  const times = [];
  const errors = [];
  const began = performance.now();
  const end = began + millis;
  async function caller() {
    let now = performance.now();
    do {
      try {
        await call();
      } catch (error) {
        errors.push(error);
      }
      const after = performance.now();
      times.push(after - now);
      now = after;
    } while (now < end);
  }
  await Promise.all(Array.from({ length: callers }, caller));
  const took = performance.now() - began;
  times.sort((a, b) => a - b);
  const done = times.length - errors.length;
  return {
    done,
    failed: errors.length,
    error: errors.length > 0 ? String(errors[0]) : undefined,
    perSecond: (done * 1000) / took,
    p50: percentile(times, 50),
    p99: percentile(times, 99),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const load = JSON.parse(line);
  console.log(
    JSON.stringify(await measure(calls[`${load.way} ${load.operation}`], load)),
  );
}
await Promise.all([unary.close(), exchange.close()]);
plain.close();
