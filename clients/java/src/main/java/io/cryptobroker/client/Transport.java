// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ConnectivityState;
import io.grpc.KnownLength;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import io.grpc.netty.shaded.io.netty.channel.epoll.Epoll;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import io.grpc.netty.shaded.io.netty.handler.codec.http2.Http2Exception;
import io.grpc.netty.shaded.io.netty.util.concurrent.DefaultThreadFactory;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;

/** The connection to a broker. It connects again by itself. */
final class Transport {
  /** The size in bytes of the largest message that the client reads. Brokers send up to 4 MiB. */
  private static final int MAX_REPLY = 8 << 20;

  /**
   * These bound how long calls wait for a broker that does not run any more. A broker that runs may
   * read nothing of a connection for a minute, while other clients use all memory of its caller.
   */
  private static final Duration PING_AFTER = Duration.ofSeconds(20);

  private static final Duration PING_TIMEOUT = Duration.ofSeconds(70);

  private static final MethodDescriptor.Marshaller<byte[]> BYTES =
      new MethodDescriptor.Marshaller<>() {
        @Override
        public InputStream stream(byte[] message) {
          return new ByteArrayInputStream(message);
        }

        @Override
        public byte[] parse(InputStream message) {
          try {
            if (message instanceof KnownLength) {
              // readAllBytes would allocate 16 KiB for each message.
              byte[] all = new byte[message.available()];
              message.readNBytes(all, 0, all.length);
              return all;
            }
            return message.readAllBytes();
          } catch (IOException e) {
            throw new UncheckedIOException(e);
          }
        }
      };

  private static final MethodDescriptor<byte[], byte[]> EXCHANGE =
      MethodDescriptor.<byte[], byte[]>newBuilder(
              new MethodDescriptor.Marshaller<>() {
                @Override
                public InputStream stream(byte[] message) {
                  return new ByteArrayInputStream(message) {
                    @Override
                    public void close() {
                      Arrays.fill(message, (byte) 0); // it was sent, or will never be
                    }
                  };
                }

                @Override
                public byte[] parse(InputStream message) {
                  return BYTES.parse(message);
                }
              },
              BYTES)
          .setFullMethodName("cryptobroker.stream.v1.StreamService/Exchange")
          .setType(MethodDescriptor.MethodType.BIDI_STREAMING)
          .build();

  private final String socket;
  private final EpollEventLoopGroup loop;
  private final ManagedChannel channel;

  Transport(String socket) {
    if (!Epoll.isAvailable()) {
      throw new UnsupportedOperationException(
          "crypto broker: found no epoll on this system, expected Linux on x86-64 or arm64",
          Epoll.unavailabilityCause());
    }
    this.socket = socket;
    // The thread is a daemon, so that a program that does not close its client ends.
    loop = new EpollEventLoopGroup(1, new DefaultThreadFactory("crypto-broker", true));
    channel =
        NettyChannelBuilder.forAddress(new DomainSocketAddress(socket))
            .eventLoopGroup(loop)
            .channelType(EpollDomainSocketChannel.class)
            // gRPC sets it for each socket, and Netty warns that Unix sockets do not have it.
            .withOption(ChannelOption.SO_KEEPALIVE, null)
            .overrideAuthority("localhost")
            .userAgent("crypto-broker-java")
            .usePlaintext()
            .disableRetry()
            .disableServiceConfigLookUp()
            .directExecutor()
            .maxInboundMessageSize(MAX_REPLY)
            .keepAliveTime(PING_AFTER.toSeconds(), TimeUnit.SECONDS)
            .keepAliveTimeout(PING_TIMEOUT.toSeconds(), TimeUnit.SECONDS)
            .build();
  }

  /** Begins a call of gRPC. */
  Rpc begin(String method, boolean streams, Ending ending) {
    var descriptor =
        MethodDescriptor.<byte[], byte[]>newBuilder(BYTES, BYTES)
            .setFullMethodName(method)
            .setType(
                streams
                    ? MethodDescriptor.MethodType.BIDI_STREAMING
                    : MethodDescriptor.MethodType.UNARY)
            .build();
    CallOptions options = CallOptions.DEFAULT;
    if (ending.hasDeadline()) {
      options = options.withDeadlineAfter(ending.leftNanos(), TimeUnit.NANOSECONDS);
    }
    return new Rpc(channel.newCall(descriptor, options));
  }

  /** Returns the stream of many calls, which was not begun. */
  ClientCall<byte[], byte[]> exchange() {
    return channel.newCall(EXCHANGE, CallOptions.DEFAULT);
  }

  /** Runs a task in the thread of the connection, after what the thread does now. */
  void execute(Runnable task) {
    loop.execute(task);
  }

  /** Runs a task once, when the current connection is not used any more. */
  void onNextConnection(Runnable task) {
    channel.notifyWhenStateChanged(ConnectivityState.READY, task);
  }

  /** Makes a unary call. */
  byte[] unary(String operation, String profile, String method, byte[] request, Ending ending)
      throws Refused {
    Rpc rpc = begin(method, false, ending);
    try {
      rpc.send(request);
      rpc.end();
      byte[] reply = rpc.reply();
      Status status = rpc.status();
      if (!status.isOk()) {
        throw new Refused(failure(operation, profile, status, ending));
      }
      return reply == null ? new byte[0] : reply;
    } catch (InterruptedException e) {
      throw new Refused(ending.interrupted(operation, profile, e));
    } finally {
      rpc.cancel();
    }
  }

  /** Returns the failure of a call of gRPC. */
  Failure failure(String operation, String profile, Status status, Ending ending) {
    if (ending.closed()) {
      return ending.afterClose(operation, profile);
    }
    Code code = broken(status) ? Code.UNAVAILABLE : Code.of(status.getCode().value());
    String sentence =
        status.getDescription() == null ? "there is no reason" : status.getDescription();
    if (code == Code.DEADLINE_EXCEEDED && ending.hasDeadline()) {
      return ending.late(operation, profile, null);
    }
    if (status.getCause() != null) {
      sentence += ": " + status.getCause().getMessage();
    }
    return refused(operation, profile, code, sentence);
  }

  /**
   * Returns the failure of a status. Sentences of a broker begin with the operation. Others get the
   * operation and the socket.
   */
  Failure refused(String operation, String profile, Code code, String sentence) {
    return Failure.of(
        code,
        sentence.startsWith(operation)
            ? sentence
            : Failure.said(operation, profile, sentence + " (socket " + socket + ")"));
  }

  /**
   * Returns the failure of a call without a reply on a stream that has ended, or null if one of the
   * calls may have caused the end.
   */
  Failure lost(String operation, String profile, Status status, Ending ending) {
    if (ending.closed()) {
      return ending.afterClose(operation, profile);
    }
    boolean lost =
        broken(status)
            || switch (status.getCode()) {
              case OK, UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED -> true;
              default -> false;
            };
    if (!lost) {
      return null;
    }
    String sentence =
        status.getDescription() == null ? "the stream has ended" : status.getDescription();
    return refused(operation, profile, Code.UNAVAILABLE, sentence);
  }

  /**
   * Reports whether a status says that the connection broke, and not what a broker says. gRPC gives
   * some of these the codes UNKNOWN, INTERNAL and CANCELLED, depending on what it noticed first. A
   * status from a broker has no cause.
   */
  private static boolean broken(Status status) {
    Throwable cause = status.getCause();
    String description = status.getDescription();
    return cause instanceof IOException
        || cause instanceof Http2Exception
        || description != null && description.startsWith("RST_STREAM closed stream");
  }

  /**
   * Connects at once if there is no connection. gRPC would wait for up to two minutes, which is
   * meant for servers on a network.
   */
  void reconnect() {
    channel.resetConnectBackoff();
  }

  /** Ends all calls and the connection. */
  void close() {
    channel.shutdownNow();
    loop.shutdownGracefully(0, 1, TimeUnit.SECONDS);
  }
}
