// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import com.google.protobuf.UnsafeByteOperations;
import io.cryptobroker.client.internal.v1.ComponentKeys;
import io.cryptobroker.client.internal.v1.KeySource;
import io.cryptobroker.client.internal.v1.SignKeySource;
import java.util.Objects;

/** A key of a request. */
public final class Key {
  final KeySource source;

  private Key(KeySource source) {
    this.source = source;
  }

  /**
   * Returns the key of the broker with an id. The profile has to list it.
   *
   * @param id at most 64 bytes of printable ASCII without spaces
   * @return the key
   */
  public static Key keyId(String id) {
    return new Key(KeySource.newBuilder().setKeyId(Objects.requireNonNull(id, "id")).build());
  }

  /**
   * Returns a key that the request brings. A profile that lists keys of the broker refuses it. The
   * bytes are not copied.
   *
   * @param key the 16, 24 or 32 bytes of an AES key, or a key in PEM or DER, at most 64 KiB
   * @return the key
   */
  public static Key rawKey(byte[] key) {
    Objects.requireNonNull(key, "key");
    return new Key(KeySource.newBuilder().setRawKey(UnsafeByteOperations.unsafeWrap(key)).build());
  }

  /** Returns the key, or the two keys of a hybrid, for operations with key pairs. */
  static SignKeySource pair(Key key, Key postQuantumKey) {
    if (postQuantumKey == null) {
      return SignKeySource.newBuilder().setSingle(key.source).build();
    }
    var both = ComponentKeys.newBuilder().addKeys(key.source).addKeys(postQuantumKey.source);
    return SignKeySource.newBuilder().setComponentKeys(both).build();
  }
}
