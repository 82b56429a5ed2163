// SPDX-License-Identifier: Apache-2.0

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.MessageLite;
import com.google.protobuf.Parser;
import io.cryptobroker.client.Client;
import io.cryptobroker.client.HashDataRequest;
import io.cryptobroker.client.internal.v1.HashDataResponse;
import io.cryptobroker.client.internal.v1.HashOutputFormat;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import io.grpc.stub.ClientCalls;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;

/**
 * Makes loads with the Java client and with grpc-java. README.md two directories above describes
 * loads.
 */
class Load {
  private static final String PROFILE = "Default";
  private static final int INPUT_SIZE = 32;

  private static final EpollEventLoopGroup loop = new EpollEventLoopGroup(1);
  private static final ManagedChannel plain =
      NettyChannelBuilder.forAddress(
              new DomainSocketAddress(System.getenv("CRYPTO_BROKER_SOCKET")))
          .eventLoopGroup(loop)
          .channelType(EpollDomainSocketChannel.class)
          .withOption(ChannelOption.SO_KEEPALIVE, null)
          .overrideAuthority("localhost")
          .usePlaintext()
          .build();
  private static final Client unary = Client.builder().withoutExchange().build();
  private static final Client exchange = Client.builder().build();

  private static final MethodDescriptor<
          io.cryptobroker.client.internal.v1.HashDataRequest, HashDataResponse>
      hashData =
          method(
              "cryptobroker.v1.CryptoService/HashData",
              io.cryptobroker.client.internal.v1.HashDataRequest.parser(),
              HashDataResponse.parser());
  // The request is empty, and the reply is read as a message with unknown fields.
  private static final MethodDescriptor<HashDataResponse, com.google.protobuf.Empty> health =
      method(
          "grpc.health.v1.Health/Check",
          HashDataResponse.parser(),
          com.google.protobuf.Empty.parser());

  private static final Map<String, Runnable> CALLS =
      Map.of(
          "bare HashData",
          () ->
              ClientCalls.blockingUnaryCall(
                  plain,
                  hashData,
                  CallOptions.DEFAULT,
                  io.cryptobroker.client.internal.v1.HashDataRequest.newBuilder()
                      .setProfile(PROFILE)
                      .setInput(ByteString.copyFrom(new byte[INPUT_SIZE]))
                      .setOutputFormat(HashOutputFormat.HASH_OUTPUT_FORMAT_RAW)
                      .build()),
          "bare Health",
          () ->
              ClientCalls.blockingUnaryCall(
                  plain, health, CallOptions.DEFAULT, HashDataResponse.getDefaultInstance()),
          "unary HashData",
          () -> hash(unary),
          "exchange HashData",
          () -> hash(exchange),
          "unary Health",
          () -> unary.health());

  private static void hash(Client client) {
    client.hashData(new HashDataRequest(new byte[INPUT_SIZE]).profile(PROFILE));
  }

  private static <Q extends MessageLite, A extends MessageLite> MethodDescriptor<Q, A> method(
      String name, Parser<Q> request, Parser<A> reply) {
    return MethodDescriptor.newBuilder(marshaller(request), marshaller(reply))
        .setFullMethodName(name)
        .setType(MethodDescriptor.MethodType.UNARY)
        .build();
  }

  private static <M extends MessageLite> MethodDescriptor.Marshaller<M> marshaller(
      Parser<M> parser) {
    return new MethodDescriptor.Marshaller<>() {
      @Override
      public InputStream stream(M message) {
        return new ByteArrayInputStream(message.toByteArray());
      }

      @Override
      public M parse(InputStream message) {
        try {
          return parser.parseFrom(message);
        } catch (InvalidProtocolBufferException e) {
          throw new IllegalArgumentException(e);
        }
      }
    };
  }

  public static void main(String[] args) throws IOException, InterruptedException {
    var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      JsonObject load = JsonParser.parseString(line).getAsJsonObject();
      Runnable call =
          CALLS.get(load.get("way").getAsString() + " " + load.get("operation").getAsString());
      System.out.println(
          measure(call, load.get("callers").getAsInt(), load.get("millis").getAsInt()));
    }
    unary.close();
    exchange.close();
    plain.shutdownNow();
    loop.shutdownGracefully();
  }

  /** What one caller has measured, in nanoseconds. */
  private static final class Caller extends Thread {
    private final Runnable call;
    private final long end;
    private long[] times = new long[1024];
    private int count;
    private int failed;
    private String error;

    Caller(Runnable call, long end) {
      this.call = call;
      this.end = end;
    }

    @Override
    public void run() {
      long now = System.nanoTime();
      do {
        try {
          call.run();
        } catch (RuntimeException e) {
          failed++;
          error = e.toString();
        }
        long after = System.nanoTime();
        if (count == times.length) {
          times = Arrays.copyOf(times, 2 * count);
        }
        times[count++] = after - now;
        now = after;
      } while (now < end);
    }
  }

  /** Makes a load: each caller begins its next call when it has its reply. */
  private static String measure(Runnable call, int callers, int millis)
      throws InterruptedException {
    long began = System.nanoTime();
    var all = new Caller[callers];
    for (int i = 0; i < callers; i++) {
      all[i] = new Caller(call, began + millis * 1_000_000L);
      all[i].start();
    }
    var result = new JsonObject();
    int failed = 0;
    int count = 0;
    for (Caller caller : all) {
      caller.join();
      failed += caller.failed;
      count += caller.count;
      if (caller.error != null) {
        result.addProperty("error", caller.error);
      }
    }
    double took = (System.nanoTime() - began) / 1e9;
    var times = new long[count];
    int next = 0;
    for (Caller caller : all) {
      System.arraycopy(caller.times, 0, times, next, caller.count);
      next += caller.count;
    }
    Arrays.sort(times);
    result.addProperty("done", count - failed);
    result.addProperty("failed", failed);
    result.addProperty("perSecond", (count - failed) / took);
    result.addProperty("p50", percentile(times, 50));
    result.addProperty("p99", percentile(times, 99));
    return new Gson().toJson(result);
  }

  /** Returns a percentile of sorted times, in microseconds. */
  private static double percentile(long[] sorted, int percent) {
    return sorted.length == 0
        ? 0
        : sorted[(int) ((long) sorted.length * percent / 100)] / 1000.0;
  }
}
