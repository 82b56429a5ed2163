// SPDX-License-Identifier: Apache-2.0

import js from "@eslint/js";
import ts from "typescript-eslint";

export default ts.config(
  { ignores: ["dist/", "src/messages/"] },
  js.configs.recommended,
  {
    files: ["src/**/*.ts", "src/**/*.mts"],
    extends: [ts.configs.strictTypeChecked, ts.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // An empty name stands for the default, as an absent one does.
      "@typescript-eslint/prefer-nullish-coalescing": [
        "error",
        { ignorePrimitives: { string: true } },
      ],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    },
  },
  {
    files: ["**/*.mjs", "**/*.cjs"],
    languageOptions: {
      globals: {
        AbortController: "readonly",
        AbortSignal: "readonly",
        Buffer: "readonly",
        URL: "readonly",
        console: "readonly",
        process: "readonly",
        require: "readonly",
        performance: "readonly",
        setImmediate: "readonly",
        setTimeout: "readonly",
      },
    },
  },
);
