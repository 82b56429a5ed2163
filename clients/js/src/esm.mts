// SPDX-License-Identifier: Apache-2.0

// The package for `import`. It is the same code as for `require`, so that a program that uses both
// has one class of errors.
export * from "./index.js";
