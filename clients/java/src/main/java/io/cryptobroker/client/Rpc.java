// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** One call of gRPC, for one thread that sends and receives. */
final class Rpc {
  /** The next step of the thread: take a message, send one, or, with neither, read the status. */
  record Event(byte[] message, boolean ready) {}

  private final ClientCall<byte[], byte[]> call;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final Condition ended = lock.newCondition();
  private final Deque<byte[]> messages = new ArrayDeque<>();
  private Status status;

  Rpc(ClientCall<byte[], byte[]> call) {
    this.call = call;
    call.start(new Listener(), new Metadata());
    call.request(1);
  }

  /** Sends a message. */
  void send(byte[] message) {
    call.sendMessage(message);
  }

  /** Says that no more messages follow. */
  void end() {
    call.halfClose();
  }

  /** Waits for a message, for the end of the call, or, if it is to send, for the place to do so. */
  Event next(boolean toSend) throws InterruptedException {
    lock.lockInterruptibly();
    try {
      while (true) {
        byte[] message = messages.poll();
        if (message != null) {
          call.request(1);
          return new Event(message, false);
        }
        if (status != null) {
          return new Event(null, false);
        }
        if (toSend && call.isReady()) {
          return new Event(null, true);
        }
        changed.await();
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * Waits for the end of a call with one reply, and returns the reply, or null if there is none. It
   * wakes the thread once, where {@link #next} would wake it for the reply and for the end.
   */
  byte[] reply() throws InterruptedException {
    call.request(1); // a second reply would hold up the end
    lock.lockInterruptibly();
    try {
      while (status == null) {
        ended.await();
      }
      return messages.peekLast();
    } finally {
      lock.unlock();
    }
  }

  /** Returns the status of the call, which has ended. */
  Status status() {
    lock.lock();
    try {
      return status;
    } finally {
      lock.unlock();
    }
  }

  /** Ends the call if it has not ended. */
  void cancel() {
    if (status() == null) {
      call.cancel("the client has given up the call", null);
    }
  }

  private void change(Runnable change) {
    lock.lock();
    try {
      change.run();
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private final class Listener extends ClientCall.Listener<byte[]> {
    @Override
    public void onMessage(byte[] message) {
      change(() -> messages.add(message));
    }

    @Override
    public void onReady() {
      change(() -> {});
    }

    @Override
    public void onClose(Status end, Metadata trailers) {
      change(
          () -> {
            status = end;
            ended.signalAll();
          });
    }
  }
}
