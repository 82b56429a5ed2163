// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * Says that there is no such session any more.
 *
 * @param deprecation the warning of a deprecated profile, or null
 */
public record CloseSessionResult(Deprecation deprecation) {}
