// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.List;

/**
 * The result of {@link Client#unwrapBatch}.
 *
 * @param keys the results in the order of the request
 * @param deprecation the warning of a deprecated profile, or null
 */
public record UnwrapBatchResult(List<UnwrappedKey> keys, Deprecation deprecation) {}
