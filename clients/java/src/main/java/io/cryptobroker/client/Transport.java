// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import io.grpc.CallOptions;
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
            return message.readAllBytes();
          } catch (IOException e) {
            throw new UncheckedIOException(e);
          }
        }
      };

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

  /** Makes a unary call. */
  byte[] unary(String operation, String profile, String method, byte[] request, Ending ending)
      throws Refused {
    Rpc rpc = begin(method, false, ending);
    try {
      rpc.send(request);
      rpc.end();
      byte[] reply = null;
      for (Rpc.Event event = rpc.next(false); event.message() != null; event = rpc.next(false)) {
        reply = event.message();
      }
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
    if (sentence.startsWith(operation)) {
      return Failure.of(code, sentence);
    }
    if (status.getCause() != null) {
      sentence += ": " + status.getCause().getMessage();
    }
    return Failure.of(
        code, Failure.said(operation, profile, sentence + " (socket " + socket + ")"));
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
