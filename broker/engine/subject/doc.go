// SPDX-License-Identifier: Apache-2.0

// Package subject reads distinguished names that are written as text, such as
// "CN=api.example.com,O=Example\, Inc.,C=DE".
//
// The syntax is the syntax of RFC 4514. Commas separate components, and "+" separates several
// attributes of one component. "\" is before a special character or two hexadecimal digits,
// and "#" before a value in hexadecimal DER. Attributes have names, whose case does not
// matter, or dotted object identifiers. Because released clients may send them, the syntax
// also allows:
//
//   - spaces around names and values, which have no meaning unless they are escaped;
//   - components without text, such as after a comma at the end, which are skipped;
//   - "<", ">" and "=" in a value without an escape, and "+" if no attribute follows it.
//
// Unescaped quotation marks and semicolons are refused, because older syntaxes quote values
// with quotation marks and separate components with semicolons. The error says how to write
// them.
//
// The order is different from RFC 4514: the first component of the text is the first component
// of the name, as in every released broker, and not the last.
package subject
