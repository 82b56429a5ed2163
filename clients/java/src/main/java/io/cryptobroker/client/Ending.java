// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** What ends a call before its reply: its time, an interrupt, or the end of the client. */
final class Ending {
  private final Open open;
  private final long deadline;
  private final boolean limited;

  Ending(Open open, Duration timeout) {
    this.open = open;
    this.limited = !timeout.isZero();
    // A time that has more nanoseconds than a long is 292 years.
    long nanos = TimeUnit.NANOSECONDS.convert(timeout);
    this.deadline = System.nanoTime() + Math.min(nanos, Long.MAX_VALUE / 2);
  }

  boolean hasDeadline() {
    return limited;
  }

  long leftNanos() {
    return limited ? deadline - System.nanoTime() : Long.MAX_VALUE / 2;
  }

  boolean closed() {
    return open.killed();
  }

  /** Waits before the next try, and throws if the call ends before that. */
  void pause(String operation, String profile, long nanos, Failure last) throws Refused {
    try {
      if (open.awaitKill(Math.min(nanos, leftNanos()))) {
        throw new Refused(afterClose(operation, profile));
      }
    } catch (InterruptedException e) {
      throw new Refused(interrupted(operation, profile, e));
    }
    if (leftNanos() <= 0) {
      throw new Refused(late(operation, profile, last));
    }
  }

  Failure late(String operation, String profile, Failure last) {
    String sentence = "there was no reply within the time for the call";
    if (last != null) {
      sentence += "; the last try: " + last.reason();
    }
    return Failure.of(Code.DEADLINE_EXCEEDED, Failure.said(operation, profile, sentence));
  }

  Failure interrupted(String operation, String profile, InterruptedException cause) {
    Thread.currentThread().interrupt();
    String reason = Failure.said(operation, profile, "the thread was interrupted");
    return Failure.of(Code.CANCELLED, reason, cause);
  }

  Failure afterClose(String operation, String profile) {
    return Failure.closed(Failure.said(operation, profile, "the client was closed"));
  }

  /** The calls of a client that have not ended. */
  static final class Open {
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private int calls;
    private boolean closed;
    private boolean killed;

    /** Counts a call that begins, and returns false if the client was closed. */
    boolean enter() {
      lock.lock();
      try {
        if (!closed) {
          calls++;
        }
        return !closed;
      } finally {
        lock.unlock();
      }
    }

    void leave() {
      lock.lock();
      try {
        calls--;
        changed.signalAll();
      } finally {
        lock.unlock();
      }
    }

    /** Refuses new calls, and waits until no call is left. It returns false if the time is over. */
    boolean drain(long nanos) throws InterruptedException {
      lock.lockInterruptibly();
      try {
        closed = true;
        for (long left = nanos; calls > 0; ) {
          if (left <= 0) {
            return false;
          }
          left = changed.awaitNanos(left);
        }
        return true;
      } finally {
        lock.unlock();
      }
    }

    /** Ends the pauses of all calls. */
    void kill() {
      lock.lock();
      try {
        closed = true;
        killed = true;
        changed.signalAll();
      } finally {
        lock.unlock();
      }
    }

    boolean killed() {
      lock.lock();
      try {
        return killed;
      } finally {
        lock.unlock();
      }
    }

    private boolean awaitKill(long nanos) throws InterruptedException {
      lock.lockInterruptibly();
      try {
        for (long left = nanos; left > 0 && !killed; ) {
          left = changed.awaitNanos(left);
        }
        return killed;
      } finally {
        lock.unlock();
      }
    }
  }
}
