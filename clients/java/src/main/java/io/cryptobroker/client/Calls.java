// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.MessageLite;
import com.google.protobuf.Parser;
import io.cryptobroker.client.internal.stream.v1.DecryptStreamResponse;
import io.cryptobroker.client.internal.stream.v1.DecryptStreamStart;
import io.cryptobroker.client.internal.stream.v1.EncryptStreamStart;
import io.cryptobroker.client.internal.stream.v1.HashStreamResponse;
import io.cryptobroker.client.internal.stream.v1.HashStreamStart;
import io.cryptobroker.client.internal.v1.HashOutputFormat;
import io.cryptobroker.client.internal.v1.Metadata;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.time.Duration;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/** Makes the calls of a client: tries, deadlines, errors and warnings. */
final class Calls {
  /**
   * The size in bytes of the largest request that the client sends. Brokers refuse larger ones,
   * some with the code of a broker that has too much to do, and the client would try again in vain.
   */
  private static final int MAX_REQUEST = 4 << 20;

  private static final int HASH_CHUNK = 256 << 10;
  private static final int CIPHER_CHUNK = 64 << 10;

  private final Settings settings;
  private final Transport transport;
  private final Exchanges exchanges;
  private final Ending.Open open = new Ending.Open();
  private final Set<Deprecation> warned = ConcurrentHashMap.newKeySet();

  Calls(Settings settings) {
    this.settings = settings;
    this.transport = new Transport(settings.socket());
    this.exchanges = new Exchanges(transport);
  }

  HashDataResult hashStream(InputStream input, HashStreamRequest request) {
    String profile = profileOf(request);
    var start =
        HashStreamStart.newBuilder()
            .setProfile(profile)
            .setMetadata(metadata(request))
            .setOutputFormat(HashOutputFormat.HASH_OUTPUT_FORMAT_RAW);
    var message =
        io.cryptobroker.client.internal.stream.v1.HashStreamRequest.newBuilder().setStart(start);
    HashDataResult[] result = new HashDataResult[1];
    stream(
        "HashData",
        "HashStream",
        request,
        input,
        HASH_CHUNK,
        message.build().toByteArray(),
        chunk ->
            io.cryptobroker.client.internal.stream.v1.HashStreamRequest.newBuilder()
                .setChunk(Request.bytes(chunk))
                .build()
                .toByteArray(),
        reply -> {
          HashStreamResponse r = parse("HashData", profile, HashStreamResponse.parser(), reply);
          result[0] =
              new HashDataResult(
                  r.getHashValueRaw().toByteArray(),
                  r.getCryptoDescriptor().getAlgorithm(),
                  Deprecation.of(r.getMetadata()));
        });
    return tell(ended("HashData", profile, result[0]), HashDataResult::deprecation);
  }

  StreamResult encryptStream(InputStream input, OutputStream output, EncryptStreamRequest request) {
    var start =
        EncryptStreamStart.newBuilder()
            .setProfile(profileOf(request))
            .setMetadata(metadata(request))
            .setKeyId(request.keyId)
            .setContext(Request.bytes(request.context));
    var message =
        io.cryptobroker.client.internal.stream.v1.EncryptStreamRequest.newBuilder().setStart(start);
    return cipher("EncryptStream", request, input, output, message.build().toByteArray());
  }

  StreamResult decryptStream(InputStream input, OutputStream output, DecryptStreamRequest request) {
    var start =
        DecryptStreamStart.newBuilder()
            .setProfile(profileOf(request))
            .setMetadata(metadata(request))
            .setContext(Request.bytes(request.context));
    var message =
        io.cryptobroker.client.internal.stream.v1.DecryptStreamRequest.newBuilder().setStart(start);
    return cipher("DecryptStream", request, input, output, message.build().toByteArray());
  }

  Health health() {
    return within(
        "Health",
        "",
        settings.timeout(),
        ending -> {
          transport.reconnect();
          byte[] reply =
              transport.unary("Health", "", "grpc.health.v1.Health/Check", new byte[0], ending);
          return Operations.health(reply);
        });
  }

  boolean close(Duration limit) {
    boolean drained = false;
    try {
      drained = open.drain(TimeUnit.NANOSECONDS.convert(limit));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      open.kill();
      transport.close();
    }
    return drained;
  }

  private StreamResult cipher(
      String operation, Request<?> request, InputStream input, OutputStream output, byte[] start) {
    String profile = profileOf(request);
    StreamResult[] result = new StreamResult[1];
    stream(
        operation,
        operation,
        request,
        input,
        CIPHER_CHUNK,
        start,
        chunk ->
            io.cryptobroker.client.internal.stream.v1.EncryptStreamRequest.newBuilder()
                .setChunk(Request.bytes(chunk))
                .build()
                .toByteArray(),
        reply -> {
          // The replies of both operations have the same fields.
          var part = parse(operation, profile, DecryptStreamResponse.parser(), reply);
          if (part.hasChunk()) {
            write(operation, profile, output, part.getChunk());
          }
          if (part.hasEnd()) {
            result[0] =
                new StreamResult(
                    part.getEnd().getCryptoDescriptor().getAlgorithm(),
                    Deprecation.of(part.getEnd().getMetadata()));
          }
        });
    return tell(ended(operation, profile, result[0]), StreamResult::deprecation);
  }

  private static void write(String operation, String profile, OutputStream output, ByteString chunk)
      throws Refused {
    try {
      chunk.writeTo(output);
    } catch (IOException e) {
      String what = "the output cannot be written: " + e.getMessage();
      throw new Refused(Failure.of(Code.UNKNOWN, Failure.said(operation, profile, what), e));
    }
  }

  private void stream(
      String operation,
      String method,
      Request<?> request,
      InputStream input,
      int size,
      byte[] start,
      Function<byte[], byte[]> message,
      Streaming.Replies replies) {
    String profile = profileOf(request);
    String path = "cryptobroker.stream.v1.StreamService/" + method;
    within(
        operation,
        profile,
        timeoutOf(request),
        ending -> {
          var streaming = new Streaming(operation, profile, input, size);
          try {
            return Retry.run(
                operation,
                profile,
                settings.retryBudget(),
                ending,
                transport,
                () -> {
                  streaming.attempt(transport, path, start, message, replies, ending);
                  return true;
                });
          } finally {
            streaming.clear();
          }
        });
  }

  /** Makes a call of an operation, and tries again after transient failures. */
  <Q extends Request<Q>, M extends MessageLite, A> A call(
      Operations.Operation<Q, M, A> operation, Q request) {
    String name = operation.name();
    String profile = profileOf(request);
    byte[] bytes =
        operation.message().apply(request, new Operations.Head(profile, metadata(request)));
    try {
      A result =
          within(
              name,
              profile,
              timeoutOf(request),
              ending -> {
                if (bytes.length > MAX_REQUEST) {
                  String sentence =
                      "the request has %d bytes, expected at most %d"
                          .formatted(bytes.length, MAX_REQUEST);
                  throw new Refused(
                      Failure.of(Code.INVALID_ARGUMENT, Failure.said(name, profile, sentence)));
                }
                byte[] reply =
                    Retry.run(
                        name,
                        profile,
                        settings.retryBudget(),
                        ending,
                        transport,
                        () -> attempt(operation, profile, bytes, ending));
                try {
                  M message = parse(name, profile, operation.parser(), reply);
                  return operation.result().apply(message, profile);
                } catch (IllegalStateException e) {
                  throw new Refused(unreadable(name, profile, e));
                } finally {
                  Arrays.fill(reply, (byte) 0);
                }
              });
      return tell(result, operation.deprecation());
    } finally {
      Arrays.fill(bytes, (byte) 0);
    }
  }

  /**
   * Makes a call once, on the stream of many calls if it is small and the broker has the stream.
   */
  private byte[] attempt(
      Operations.Operation<?, ?, ?> operation, String profile, byte[] request, Ending ending)
      throws Refused {
    if (settings.exchange() && operation.number() > 0 && request.length <= Exchanges.MAX_REQUEST) {
      byte[] reply = exchanges.call(operation, profile, request, ending);
      if (reply != null) {
        return reply;
      }
    }
    String name = operation.name();
    return transport.unary(name, profile, operation.service() + "/" + name, request, ending);
  }

  /** The work of a call until it ends. */
  private interface Body<T> {
    T make(Ending ending) throws Refused;
  }

  private <T> T within(String operation, String profile, Duration timeout, Body<T> body) {
    Ending ending = new Ending(open, timeout);
    if (!open.enter()) {
      throw new CryptoBrokerException(operation, profile, ending.afterClose(operation, profile));
    }
    try {
      return body.make(ending);
    } catch (Refused refused) {
      throw new CryptoBrokerException(operation, profile, refused.failure);
    } finally {
      open.leave();
    }
  }

  private static <M> M parse(String operation, String profile, Parser<M> parser, byte[] reply)
      throws Refused {
    try {
      return parser.parseFrom(reply);
    } catch (InvalidProtocolBufferException e) {
      throw new Refused(unreadable(operation, profile, e));
    }
  }

  private static Failure unreadable(String operation, String profile, Exception cause) {
    String what = "the reply cannot be read: " + cause.getMessage();
    return Failure.of(Code.INTERNAL, Failure.said(operation, profile, what), cause);
  }

  private static <T> T ended(String operation, String profile, T result) {
    if (result == null) {
      String what = Failure.said(operation, profile, "the replies have no end");
      throw new CryptoBrokerException(operation, profile, Failure.of(Code.INTERNAL, what));
    }
    return result;
  }

  private String profileOf(Request<?> request) {
    return request.profile.isEmpty() ? settings.profile() : request.profile;
  }

  private Duration timeoutOf(Request<?> request) {
    return request.timeout == null ? settings.timeout() : request.timeout;
  }

  private Metadata metadata(Request<?> request) {
    TraceContext trace = request.traceContext;
    return Operations.metadata(trace == null ? settings.traceContext().get() : trace);
  }

  /** Calls the handler of deprecation warnings, once for each different warning. */
  private <T> T tell(T result, Function<T, Deprecation> deprecation) {
    Deprecation warning = deprecation.apply(result);
    if (warning != null && warned.add(warning)) {
      settings.onDeprecation().accept(warning);
    }
    return result;
  }
}
