// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.WireFormat;
import io.cryptobroker.client.internal.stream.v1.Call;
import io.cryptobroker.client.internal.stream.v1.ExchangeRequest;
import io.cryptobroker.client.internal.stream.v1.ExchangeResponse;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * One stream that many calls share.
 *
 * <p>Threads add their calls. The thread of the connection sends all that wait in as few messages
 * as possible, and gives replies to the threads.
 */
final class Exchange extends ClientCall.Listener<byte[]> {
  /** After how many bytes the calls that wait are split into messages. */
  private static final int MAX_MESSAGE = 256 << 10;

  private final Exchanges owner;
  private final Transport transport;
  private final ClientCall<byte[], byte[]> call;
  private final ReentrantLock lock = new ReentrantLock();

  /** The calls by their ids. A call that nobody waits for any more is null. */
  private final Map<Long, Waiting> pending = new HashMap<>();

  /** The parts of the messages that are sent next. */
  private final Queue<byte[]> parts = new ArrayDeque<>();

  private final AtomicLong lastId = new AtomicLong();
  private boolean begun;
  private boolean scheduled;
  private boolean ended;

  Exchange(Exchanges owner, Transport transport) {
    this.owner = owner;
    this.transport = transport;
    this.call = transport.exchange();
  }

  /**
   * What a call ends with: a reply, a failure, or neither if it has to be made without the stream.
   */
  private record Outcome(byte[] reply, Failure failure) {}

  /** A call that waits for its reply. */
  static final class Waiting {
    private final int number;
    private final String operation;
    private final String profile;
    private final Ending ending;
    private final CompletableFuture<Outcome> outcome = new CompletableFuture<>();
    private long id;

    Waiting(int number, String operation, String profile, Ending ending) {
      this.number = number;
      this.operation = operation;
      this.profile = profile;
      this.ending = ending;
    }
  }

  void begin() {
    call.start(this, new Metadata());
    call.request(1);
    lock.lock();
    try {
      begun = true;
      schedule();
    } finally {
      lock.unlock();
    }
  }

  /** Puts a call on the stream. It returns false if the stream has ended. */
  boolean add(Waiting waiting, byte[] request) {
    Ending ending = waiting.ending;
    long millis = ending.hasDeadline() ? TimeUnit.NANOSECONDS.toMillis(ending.leftNanos()) : 0;
    int timeout = ending.hasDeadline() ? (int) Math.min(Math.max(millis, 1), Integer.MAX_VALUE) : 0;
    waiting.id = lastId.incrementAndGet();
    byte[] part = part(waiting.id, waiting.number, timeout, request);
    lock.lock();
    try {
      if (ended) {
        Arrays.fill(part, (byte) 0);
        return false;
      }
      pending.put(waiting.id, waiting);
      parts.add(part);
      schedule();
      return true;
    } finally {
      lock.unlock();
    }
  }

  /**
   * Waits for the reply to a call.
   *
   * @return the reply, or null if the call has to be made without the stream
   */
  byte[] await(Waiting waiting) throws Refused {
    Outcome outcome;
    try {
      outcome = waiting.outcome.get(waiting.ending.leftNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      // A broker knows itself when the time of a call is over.
      outcome = forget(waiting, false);
      if (outcome == null) {
        throw new Refused(waiting.ending.late(waiting.operation, waiting.profile, null));
      }
    } catch (InterruptedException e) {
      forget(waiting, true);
      throw new Refused(waiting.ending.interrupted(waiting.operation, waiting.profile, e));
    } catch (ExecutionException e) {
      throw new IllegalStateException(e); // nothing completes a call this way
    }
    if (outcome.failure() != null) {
      throw new Refused(outcome.failure());
    }
    return outcome.reply();
  }

  /**
   * Ends the wait for a call. The broker still serves it, so the call keeps its slot. It returns
   * the outcome if the call has one by now.
   */
  private Outcome forget(Waiting waiting, boolean giveUp) {
    lock.lock();
    try {
      if (!ended && pending.replace(waiting.id, waiting, null)) {
        if (giveUp) {
          parts.add(givenUp(waiting.id));
          schedule();
        }
        return null;
      }
      return waiting.outcome.getNow(null);
    } finally {
      lock.unlock();
    }
  }

  /** Lets the thread of the connection send, after other threads had the time to add calls. */
  private void schedule() {
    if (scheduled || !begun) {
      return;
    }
    scheduled = true;
    try {
      transport.execute(this::send);
    } catch (RejectedExecutionException e) {
      end(Status.UNAVAILABLE.withDescription("the connection was closed"));
    }
  }

  private void send() {
    for (byte[] next = next(); next != null; next = next()) {
      call.sendMessage(next);
    }
  }

  /** Returns the message that can be sent now, or null if there is none. */
  private byte[] next() {
    lock.lock();
    try {
      scheduled = false;
      boolean ready = begun && !ended && !parts.isEmpty() && call.isReady();
      return ready ? nextMessage() : null;
    } finally {
      lock.unlock();
    }
  }

  private byte[] nextMessage() {
    int size = 0;
    int count = 0;
    for (byte[] part : parts) {
      if (count > 0 && size + part.length > MAX_MESSAGE) {
        break;
      }
      size += part.length;
      count++;
    }
    if (count == 1) {
      return parts.remove();
    }
    byte[] message = new byte[size];
    int end = 0;
    for (; count > 0; count--) {
      byte[] part = parts.remove();
      System.arraycopy(part, 0, message, end, part.length);
      end += part.length;
      Arrays.fill(part, (byte) 0);
    }
    return message;
  }

  /** Returns the encoded field of ExchangeRequest with a call. */
  private static byte[] part(long id, int number, int timeout, byte[] request) {
    int size =
        CodedOutputStream.computeUInt64Size(Call.ID_FIELD_NUMBER, id)
            + CodedOutputStream.computeByteArraySize(number, request)
            + (timeout > 0
                ? CodedOutputStream.computeUInt32Size(Call.TIMEOUT_MILLIS_FIELD_NUMBER, timeout)
                : 0);
    byte[] part =
        new byte
            [CodedOutputStream.computeTagSize(ExchangeRequest.CALLS_FIELD_NUMBER)
                + CodedOutputStream.computeUInt32SizeNoTag(size)
                + size];
    try {
      var output = CodedOutputStream.newInstance(part);
      output.writeTag(ExchangeRequest.CALLS_FIELD_NUMBER, WireFormat.WIRETYPE_LENGTH_DELIMITED);
      output.writeUInt32NoTag(size);
      output.writeUInt64(Call.ID_FIELD_NUMBER, id);
      if (timeout > 0) {
        output.writeUInt32(Call.TIMEOUT_MILLIS_FIELD_NUMBER, timeout);
      }
      output.writeByteArray(number, request);
      output.checkNoSpaceLeft();
    } catch (IOException e) {
      throw new UncheckedIOException(e); // the array has the size of its content
    }
    return part;
  }

  private static byte[] givenUp(long id) {
    return ExchangeRequest.newBuilder().addGivenUp(id).build().toByteArray();
  }

  @Override
  public void onReady() {
    send();
  }

  /** Gives the replies of a message to their calls. */
  @Override
  public void onMessage(byte[] message) {
    try {
      List<Answer> answers = new ArrayList<>();
      boolean last = read(message, answers);
      List<Waiting> calls = take(answers);
      // A thread that wakes needs the lock for its next call.
      for (int i = 0; i < calls.size(); i++) {
        if (calls.get(i) != null) {
          give(answers.get(i), calls.get(i));
        }
      }
      if (last) {
        end(Status.UNAVAILABLE.withDescription("the broker shuts down"));
        call.cancel("the broker shuts down", null);
      } else {
        call.request(1);
      }
    } catch (IOException e) {
      end(Status.INTERNAL.withDescription("the replies cannot be read: " + e.getMessage()));
      call.cancel("the replies cannot be read", e);
    } finally {
      Arrays.fill(message, (byte) 0);
    }
  }

  /** Reads the replies of a message. It returns whether no more replies follow. */
  private static boolean read(byte[] message, List<Answer> answers) throws IOException {
    var input = CodedInputStream.newInstance(message);
    for (int tag = input.readTag(); tag != 0; tag = input.readTag()) {
      switch (WireFormat.getTagFieldNumber(tag)) {
        case ExchangeResponse.REPLIES_FIELD_NUMBER -> {
          int limit = input.pushLimit(input.readRawVarint32());
          answers.add(Answer.read(input));
          input.popLimit(limit);
        }
        case ExchangeResponse.GO_AWAY_FIELD_NUMBER -> {
          return true;
        }
        default -> input.skipField(tag);
      }
    }
    return false;
  }

  /** Returns the calls of answers. A call that nobody waits for is null. */
  private List<Waiting> take(List<Answer> answers) {
    List<Waiting> calls = new ArrayList<>(answers.size());
    int known = 0;
    lock.lock();
    try {
      for (Answer answer : answers) {
        known += pending.containsKey(answer.id()) ? 1 : 0;
        calls.add(pending.remove(answer.id()));
      }
    } finally {
      lock.unlock();
    }
    owner.answered(known);
    return calls;
  }

  private void give(Answer answer, Waiting waiting) {
    Failure failure = null;
    byte[] reply = null;
    if (answer.refusal() == null) {
      // If it is no reply to this call, the unary call gets one.
      reply = answer.number() == waiting.number ? answer.body() : null;
    } else {
      Code code = Code.of(answer.refusal().getCode());
      // The broker may have the operation as a unary call only.
      if (code != Code.UNIMPLEMENTED) {
        String sentence = answer.refusal().getMessage();
        failure = transport.refused(waiting.operation, waiting.profile, code, sentence);
      }
    }
    waiting.outcome.complete(new Outcome(reply, failure));
  }

  @Override
  public void onClose(Status status, Metadata trailers) {
    end(status);
  }

  /**
   * Gives all calls that are left their outcome. If one of them may have caused the end of the
   * stream, each is made as a unary call, and gets its own answer.
   */
  private void end(Status status) {
    lock.lock();
    try {
      if (ended) {
        return;
      }
      ended = true;
      if (status.getCode() == Status.Code.UNIMPLEMENTED) {
        owner.unimplemented();
      }
      owner.answered(pending.size());
      for (Waiting waiting : pending.values()) {
        if (waiting != null) {
          waiting.outcome.complete(
              new Outcome(
                  null,
                  transport.lost(waiting.operation, waiting.profile, status, waiting.ending)));
        }
      }
      pending.clear();
      parts.forEach(part -> Arrays.fill(part, (byte) 0));
      parts.clear();
    } finally {
      lock.unlock();
    }
  }
}
