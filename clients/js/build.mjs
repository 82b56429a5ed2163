// SPDX-License-Identifier: Apache-2.0

// Compiles src to dist. It empties dist before, because the output of a deleted source must not be published.
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { createRequire } from "node:module";

const folder = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");

rmSync(`${folder}/dist`, { recursive: true, force: true });
execFileSync(process.execPath, [compiler, "--project", folder], { stdio: "inherit" });
