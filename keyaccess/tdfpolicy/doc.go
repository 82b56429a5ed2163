// SPDX-License-Identifier: Apache-2.0

// Package tdfpolicy reads the policies of OpenTDF files, and decides who may have their data keys.
//
// A policy has attributes, each with a fully qualified name such as
// https://example.com/attr/classification/value/secret, and a list of recipients, which OpenTDF
// calls dissem. [Rules] permit nothing that they do not name.
package tdfpolicy
