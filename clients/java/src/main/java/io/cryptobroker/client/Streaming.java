// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import io.grpc.Status;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.function.Function;

/** A call whose input is a stream. Its first chunk is sent again when the call is tried again. */
final class Streaming {
  /** Takes a reply. */
  interface Replies {
    void take(byte[] reply) throws Refused;
  }

  private final String operation;
  private final String profile;
  private final InputStream input;
  private final byte[] chunk;
  private final byte[] first;
  private final int firstLength;
  private boolean begun;

  /** Reads the first chunk of the input. */
  Streaming(String operation, String profile, InputStream input, int size) throws Refused {
    this.operation = operation;
    this.profile = profile;
    this.input = input;
    this.first = new byte[size];
    this.chunk = new byte[size];
    this.firstLength = read(first);
  }

  private int read(byte[] into) throws Refused {
    try {
      return input.readNBytes(into, 0, into.length);
    } catch (IOException e) {
      String what = "the input cannot be read: " + e.getMessage();
      throw new Refused(Failure.of(Code.UNKNOWN, Failure.said(operation, profile, what), e));
    }
  }

  /** Makes the call once. A failure is final if more than the first chunk was used. */
  void attempt(
      Transport transport,
      String method,
      byte[] start,
      Function<byte[], byte[]> message,
      Replies replies,
      Ending ending)
      throws Refused {
    Rpc rpc = transport.begin(method, true, ending);
    try {
      rpc.send(start);
      byte[] next = firstLength == 0 ? null : Arrays.copyOf(first, firstLength);
      boolean sending = true;
      while (true) {
        Rpc.Event event = rpc.next(sending);
        if (event.message() != null) {
          begun = true;
          replies.take(event.message());
        } else if (!event.ready()) {
          break;
        } else if (next != null) {
          rpc.send(message.apply(next));
          Arrays.fill(next, (byte) 0);
          next = following(next.length);
        } else {
          rpc.end();
          sending = false;
        }
      }
      Status status = rpc.status();
      if (!status.isOk()) {
        Failure failure = transport.failure(operation, profile, status, ending);
        throw new Refused(begun ? failure.partial() : failure);
      }
    } catch (InterruptedException e) {
      throw new Refused(ending.interrupted(operation, profile, e));
    } finally {
      rpc.cancel();
    }
  }

  /** Returns the chunk after one of a length, or null after the end of the input. */
  private byte[] following(int length) throws Refused {
    if (length < chunk.length) {
      return null;
    }
    begun = true;
    int more = read(chunk);
    return more == 0 ? null : Arrays.copyOf(chunk, more);
  }

  /** Overwrites what was read. */
  void clear() {
    Arrays.fill(first, (byte) 0);
    Arrays.fill(chunk, (byte) 0);
  }
}
