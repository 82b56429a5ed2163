// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * The result for one key of a batch: it has either a data key or an error.
 *
 * @param dataKey the authentic data key, or null. Overwrite it after use.
 * @param error the error that {@link Client#unwrapKey} would have thrown, or null
 */
public record UnwrappedKey(byte[] dataKey, CryptoBrokerException error) {}
