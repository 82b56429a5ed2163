// SPDX-License-Identifier: Apache-2.0

// A service that answers POST /hash with the digest of the body.
import { Client, CryptoBrokerError } from "@crypto-broker/client";
import express from "express";

const client = new Client({ profile: "Default", timeoutMs: 10_000 });
const app = express();

app.get("/healthz", (request, response) => response.type("text").send("ok\n"));

app.get("/readyz", async (request, response) => {
  const health = await client.health().catch(() => "UNKNOWN");
  response.sendStatus(health === "SERVING" ? 200 : 503);
});

// HashData takes at most 1 MiB.
const bytes = express.raw({ type: () => true, limit: "1mb" });
app.post("/hash", bytes, async (request, response) => {
  const input = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  const { algorithm, hex } = await client.hashData({ input });
  response.json({ algorithm, digest: hex });
});

// Express finds an error handler by its four parameters.
app.use((error, request, response, next) => {
  if (!(error instanceof CryptoBrokerError)) return next(error);
  console.error(error.message);
  response.status(502).send("the broker has not hashed the body\n");
});

const server = app.listen(8080);

for (const signal of ["SIGTERM", "SIGINT"]) {
  process.once(signal, () => {
    // Requests first, because they use the client.
    server.close(() => client.close());
  });
}
