// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { startBroker, temporaryFolder } from "./broker.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const readme = readFileSync(join(root, "README.md"), "utf8");

/** program returns the code of the README under the sentence that ends with a file name. */
function program(name) {
  const [, code] = readme.match(new RegExp(`\`${name}\`:\\n\\n\`\`\`js\\n([^]*?)\`\`\``)) ?? [];
  assert.ok(code, `the README has no program ${name}`);
  return code;
}

const types = `
import { Client, CryptoBrokerError, type HashDataResult, keyId } from "@crypto-broker/client";

export async function hash(client: Client): Promise<HashDataResult> {
  // @ts-expect-error: the input is no text
  await client.hashData({ input: "abc" });
  // @ts-expect-error: the request has no such field
  await client.hashData({ input: new Uint8Array(), keyId: keyId("orders") });
  try {
    return await client.hashData({ profile: "Default", input: new Uint8Array() });
  } catch (error) {
    if (error instanceof CryptoBrokerError && error.code === "NOT_FOUND") console.log(error.profile);
    // @ts-expect-error: there is no such code
    if (error instanceof CryptoBrokerError && error.code === "NOTHING") console.log(error.profile);
    throw error;
  }
}
`;

test("the packed package works in an empty directory as its README says", async (t) => {
  const folder = temporaryFolder(t);
  const run = (program, ...args) =>
    execFileSync(program, args, {
      cwd: folder,
      encoding: "utf8",
      env: { ...process.env, CRYPTO_BROKER_SOCKET: broker.socket },
      stdio: ["ignore", "pipe", "inherit"],
    });
  const broker = await startBroker(t);
  const pack = ["pack", "--ignore-scripts", "--json", "--pack-destination", folder, root];
  const [{ filename, files }] = JSON.parse(run("npm", ...pack));
  writeFileSync(join(folder, "package.json"), "{}");
  const quiet = ["--prefer-offline", "--no-audit", "--no-fund", "--silent"];
  run("npm", "install", ...quiet, `./${filename}`);

  await t.test("it has its code, its types, its license and nothing else", () => {
    const paths = files.map(({ path }) => path);
    for (const path of [
      "LICENSE",
      "README.md",
      "package.json",
      "dist/index.js",
      "dist/esm.d.mts",
    ]) {
      assert.ok(paths.includes(path), `${path} is missing`);
    }
    const others = paths.filter(
      (path) => !/^(LICENSE|README\.md|package\.json|dist\/.*)$/.test(path),
    );
    assert.deepEqual(others, []);
  });

  await t.test("it brings two packages beside what gRPC needs", () => {
    const { dependencies } = JSON.parse(
      readFileSync(join(folder, "node_modules/@crypto-broker/client/package.json"), "utf8"),
    );
    assert.deepEqual(Object.keys(dependencies), ["@bufbuild/protobuf", "@grpc/grpc-js"]);
  });

  await t.test("the first program hashes", () => {
    writeFileSync(join(folder, "first.mjs"), program("first.mjs"));
    const digest = createHash("sha256").update("abc").digest("hex");
    assert.equal(run(process.execPath, "first.mjs"), `sha-256 ${digest}\n`);
  });

  await t.test("the program in CommonJS encrypts, and says what went wrong", () => {
    writeFileSync(join(folder, "first.cjs"), program("first.cjs"));
    assert.equal(
      run(process.execPath, "first.cjs"),
      [
        "4711 boxes",
        "FAILED_PRECONDITION SignData Orders",
        'SignData with profile "Orders": the profile does not offer this operation',
        "",
      ].join("\n"),
    );
  });

  await t.test("both module systems have the same classes", () => {
    const code = `
      import * as imported from "@crypto-broker/client";
      import { createRequire } from "node:module";
      const required = createRequire(import.meta.url)("@crypto-broker/client");
      const names = Object.keys(required).sort();
      console.log(names.join(" "), names.every((name) => imported[name] === required[name]));
    `;
    writeFileSync(join(folder, "both.mjs"), code);
    assert.equal(
      run(process.execPath, "both.mjs"),
      "Client CryptoBrokerError DEFAULT_SOCKET SOCKET_VARIABLE keyId rawKey true\n",
    );
  });

  await t.test("a program that does not close its client ends", () => {
    const [before, after] = program("first.mjs").split("await client.close();\n");
    writeFileSync(join(folder, "open.mjs"), before + after);
    assert.match(run(process.execPath, "open.mjs"), /^sha-256 /);
  });

  await t.test(
    "its types are right for both module systems, and need no package but Node's",
    () => {
      for (const name of ["types.mts", "types.cts"]) {
        writeFileSync(join(folder, name), types);
      }
      const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
      assert.ok(existsSync(compiler));
      const options = ["--noEmit", "--strict", "--module", "node16", "--target", "es2022"];
      const found = ["--types", "node", "--typeRoots", join(root, "node_modules", "@types")];
      run(process.execPath, compiler, ...options, ...found, "types.mts", "types.cts");
    },
  );
});
