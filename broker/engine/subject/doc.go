// SPDX-License-Identifier: Apache-2.0

// Package subject reads distinguished names that are written as text, such as
// "CN=api.example.com,O=Example\, Inc.,C=DE".
//
// The syntax is that of RFC 4514: components with commas between them, several
// attributes of one component with "+", "\" before a special character or two
// hexadecimal digits, "#" before a value in hexadecimal DER, names of attributes
// in any case or as dotted object identifiers. It is wider in what released
// clients may send to a broker:
//
//   - Spaces around names and values mean nothing, unless they are escaped.
//   - Components without text are skipped, as after a comma at the end.
//   - "<", ">" and "=" in a value stand for themselves, and so does "+" where no
//     attribute follows it.
//
// What other readings exist for is refused with the way to write it: an
// unescaped quotation mark, which older syntaxes quote with, and an unescaped
// semicolon, which they separate with.
//
// The order is the one difference to RFC 4514: the first component of the text
// is the first of the name, as every released broker has it, and not the last.
package subject
