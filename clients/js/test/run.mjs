// SPDX-License-Identifier: Apache-2.0

// Builds the broker and the package, once for all files of tests, and runs the tests.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "client-js-"));
try {
  const binary = join(folder, "broker");
  execFileSync("go", ["build", "-o", binary, "./cmd/broker"], {
    cwd: join(here, "..", "..", ".."),
    env: { ...process.env, CGO_ENABLED: "0" },
    stdio: "inherit",
  });
  execFileSync(process.execPath, [join(here, "..", "build.mjs")], { stdio: "inherit" });
  const only = process.argv.slice(2);
  const files = readdirSync(here).filter((name) => name.endsWith(".test.mjs"));
  const { status } = spawnSync(
    process.execPath,
    [
      "--test",
      "--test-timeout=120000",
      ...(only.length > 0 ? only : files.map((name) => join(here, name))),
    ],
    { env: { ...process.env, BROKER_BINARY: binary }, stdio: "inherit" },
  );
  process.exitCode = status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
