// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * Says whether a signature is valid.
 *
 * @param valid whether the key has made the signature of the input
 * @param deprecation the warning of a deprecated profile, or null
 */
public record VerifyDataResult(boolean valid, Deprecation deprecation) {}
