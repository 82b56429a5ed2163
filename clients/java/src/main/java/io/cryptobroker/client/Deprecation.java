// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import io.cryptobroker.client.internal.v1.Metadata;

/**
 * Announces the end of a profile. A field is empty if the profile does not have it.
 *
 * @param profile the name of the profile
 * @param replacedBy the name of the profile to use instead
 * @param since since when the profile should not be used
 * @param removeAfter the time after which the profile may be removed
 * @param reason why the profile should not be used
 */
public record Deprecation(
    String profile, String replacedBy, String since, String removeAfter, String reason) {

  /** Returns the warning in the metadata of a reply, or null. */
  static Deprecation of(Metadata metadata) {
    if (!metadata.hasDeprecation()) {
      return null;
    }
    var warning = metadata.getDeprecation();
    return new Deprecation(
        warning.getProfile(),
        warning.getReplacedBy(),
        warning.getDeprecatedSince(),
        warning.getRemoveAfter(),
        warning.getReason());
  }
}
