// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * A wrapped key with its context.
 *
 * @param wrappedKey the wrapped key of the result that made it
 * @param context the context of the wrapped key, empty if the key has none
 */
public record WrappedKey(byte[] wrappedKey, byte[] context) {}
