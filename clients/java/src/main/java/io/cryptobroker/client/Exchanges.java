// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** The streams of a client, one at a time. A new one replaces one that has ended. */
final class Exchanges {
  /**
   * The size in bytes of the largest request that is sent on the stream. Larger requests would
   * delay others, and gain nothing.
   */
  static final int MAX_REQUEST = 16 << 10;

  /** How many calls may wait for their reply on the stream at one time. */
  private static final int MAX_CALLS = 1024;

  private final Transport transport;
  private final Semaphore slots = new Semaphore(MAX_CALLS);
  private volatile Exchange current;
  private volatile boolean withoutExchange;

  Exchanges(Transport transport) {
    this.transport = transport;
  }

  /**
   * Makes a call on the stream.
   *
   * @return the reply, or null if the call has to be made without the stream
   */
  byte[] call(
      Operations.Operation<?, ?, ?> operation, String profile, byte[] request, Ending ending)
      throws Refused {
    if (withoutExchange) {
      return null;
    }
    String name = operation.name();
    try {
      if (!slots.tryAcquire(ending.leftNanos(), TimeUnit.NANOSECONDS)) {
        throw new Refused(ending.late(name, profile, null));
      }
    } catch (InterruptedException e) {
      throw new Refused(ending.interrupted(name, profile, e));
    }
    var waiting = new Exchange.Waiting(operation.number(), name, profile, ending);
    return add(waiting, request).await(waiting);
  }

  /** Puts a call on the current stream, or on the next one if that has ended. */
  private Exchange add(Exchange.Waiting waiting, byte[] request) {
    Exchange exchange = current;
    while (exchange == null || !exchange.add(waiting, request)) {
      synchronized (this) {
        if (current == exchange) {
          // The stream has its first call before it begins, so it has not ended by then.
          Exchange next = new Exchange(this, transport);
          next.add(waiting, request);
          current = next;
          next.begin();
          return next;
        }
        exchange = current;
      }
    }
    return exchange;
  }

  /** Counts calls that the broker does not serve any more. */
  void answered(int calls) {
    slots.release(calls);
  }

  /** Says that the broker of this connection does not have the stream. */
  void unimplemented() {
    withoutExchange = true;
    transport.onNextConnection(() -> withoutExchange = false);
  }
}
