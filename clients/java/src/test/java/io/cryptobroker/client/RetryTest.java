// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RetryTest {
  private static final HashDataRequest ABC = new HashDataRequest(OperationsTest.utf8("abc"));

  @TempDir Path folder;

  private static Client client(Broker broker, boolean exchange) {
    return (exchange ? broker.client() : broker.client().withoutExchange()).build();
  }

  private static <T> T result(CompletableFuture<T> future) throws Exception {
    return future.get(Broker.WAIT_LIMIT.toSeconds(), TimeUnit.SECONDS);
  }

  @ParameterizedTest(
      name = "no call is lost while the broker is ended and restarted, by a crash: {0}")
  @ValueSource(booleans = {true, false})
  void restarts(boolean crash) throws Exception {
    try (Broker broker = Broker.started(folder);
        Client client = broker.client().build()) {
      var calls = new AtomicInteger();
      var going = new AtomicBoolean(true);
      List<CompletableFuture<Void>> callers = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        byte[] input = new byte[i % 2 == 0 ? 10 : 200_000];
        byte[] want = MessageDigest.getInstance("SHA-256").digest(input);
        callers.add(
            CompletableFuture.runAsync(
                () -> {
                  while (going.get()) {
                    assertArrayEquals(want, client.hashData(new HashDataRequest(input)).digest());
                    calls.incrementAndGet();
                  }
                },
                task -> new Thread(task).start()));
      }
      for (int restart = 0; restart < 4; restart++) {
        more(client, calls, callers);
        if (crash) {
          broker.kill();
        } else {
          broker.stop();
        }
        broker.start();
      }
      more(client, calls, callers);
      going.set(false);
      for (var caller : callers) {
        result(caller);
      }
    }
  }

  @Test
  @DisplayName("the first calls of clients cause no warning")
  void beginnings() throws Exception {
    List<String> warnings = Collections.synchronizedList(new ArrayList<>());
    var handler =
        new Handler() {
          @Override
          public void publish(LogRecord line) {
            if (line.getLevel().intValue() >= Level.WARNING.intValue()) {
              warnings.add(line.getMessage());
            }
          }

          @Override
          public void flush() {}

          @Override
          public void close() {}
        };
    Logger root = Logger.getLogger("");
    root.addHandler(handler);
    try (Broker broker = Broker.started(folder)) {
      for (int i = 0; i < 100; i++) {
        try (Client client = broker.client().build()) {
          client.hashData(ABC);
        }
      }
    } finally {
      root.removeHandler(handler);
    }
    assertEquals(List.of(), warnings);
  }

  /** Waits until the callers have made more calls, or one of them has failed. */
  private static void more(
      Client client, AtomicInteger calls, List<CompletableFuture<Void>> callers) {
    for (int before = calls.get(); calls.get() < before + 50; ) {
      client.hashData(new HashDataRequest(new byte[0]));
      if (callers.stream().anyMatch(CompletableFuture::isDone)) {
        return;
      }
    }
  }

  @Test
  @DisplayName("calls and streams wait for a broker that starts later, but health does not")
  void later() throws Exception {
    try (Broker broker = new Broker(folder);
        Client client = broker.client().build()) {
      var call = CompletableFuture.supplyAsync(() -> client.hashData(ABC));
      var input = new ByteArrayInputStream(OperationsTest.utf8("abc"));
      var stream =
          CompletableFuture.supplyAsync(() -> client.hashStream(input, new HashStreamRequest()));
      var error = assertThrows(CryptoBrokerException.class, client::health);
      assertEquals(Code.UNAVAILABLE, error.code());
      broker.start();
      assertEquals(result(call).hex(), result(stream).hex());
    }
  }

  @Test
  @DisplayName("a call gives up when its retry budget is spent")
  void budget() throws Exception {
    Broker broker = new Broker(folder);
    try (Client client = broker.client().retryBudget(Duration.ofMillis(100)).build()) {
      var error = assertThrows(CryptoBrokerException.class, () -> client.hashData(ABC));
      assertEquals(Code.UNAVAILABLE, error.code());
      assertTrue(error.retryBudgetSpent());
      assertTrue(
          error
              .reason()
              .matches(
                  "HashData with profile \"Default\": .* \\(given up after \\d+ ms in \\d+ tr(y|ies)\\)"),
          error.reason());
    }
    try (Client client = broker.client().retryBudget(Duration.ZERO).build()) {
      var error = assertThrows(CryptoBrokerException.class, () -> client.hashData(ABC));
      assertTrue(error.reason().endsWith(" ms in 1 try)"), error.reason());
    }
  }

  @ParameterizedTest(
      name = "a call ends at its deadline, also while it waits for the next try, on Exchange: {0}")
  @ValueSource(booleans = {true, false})
  void deadline(boolean exchange) throws Exception {
    try (Broker broker = Broker.started(folder);
        Client client = client(broker, exchange)) {
      client.hashData(ABC);
      broker.suspend();
      var request = new HashDataRequest(new byte[0]).timeout(Duration.ofMillis(50));
      var error = assertThrows(CryptoBrokerException.class, () -> client.hashData(request));
      assertEquals(Code.DEADLINE_EXCEEDED, error.code());
      broker.kill();
      error = assertThrows(CryptoBrokerException.class, () -> client.hashData(request));
      assertEquals(Code.DEADLINE_EXCEEDED, error.code());
    }
  }

  @ParameterizedTest(
      name = "an interrupt ends a call, and the thread stays interrupted, on Exchange: {0}")
  @ValueSource(booleans = {true, false})
  void interrupt(boolean exchange) throws Exception {
    try (Broker broker = Broker.started(folder);
        Client client = client(broker, exchange)) {
      client.hashData(ABC);
      Thread.currentThread().interrupt();
      var error = assertThrows(CryptoBrokerException.class, () -> client.hashData(ABC));
      assertTrue(Thread.interrupted());
      assertEquals(Code.CANCELLED, error.code());
      assertFalse(error.clientClosed());
      client.hashData(ABC);
    }
  }

  @Test
  @DisplayName("close ends calls after its limit, and refuses new ones")
  void closing() throws Exception {
    try (Broker broker = new Broker(folder)) {
      Client client = broker.client().build();
      var begun = new CompletableFuture<Void>();
      var call =
          CompletableFuture.supplyAsync(
              () -> {
                begun.complete(null);
                return assertThrows(CryptoBrokerException.class, () -> client.hashData(ABC));
              });
      result(begun);
      client.close(Duration.ofMillis(50));
      assertTrue(result(call).clientClosed());
      var error = assertThrows(CryptoBrokerException.class, () -> client.hashData(ABC));
      assertEquals(Code.CANCELLED, error.code());
      assertTrue(error.clientClosed());
      client.close();
    }
  }

  @Test
  @DisplayName("close waits for calls")
  void drained() throws Exception {
    try (Broker broker = new Broker(folder)) {
      Client client = broker.client().build();
      var entered = new CompletableFuture<Void>();
      InputStream input =
          new InputStream() {
            @Override
            public int read() {
              entered.complete(null);
              return -1;
            }
          };
      var call =
          CompletableFuture.supplyAsync(() -> client.hashStream(input, new HashStreamRequest()));
      result(entered);
      var closed = CompletableFuture.supplyAsync(() -> client.close(Broker.WAIT_LIMIT));
      while (!assertThrows(CryptoBrokerException.class, client::health).clientClosed()) {
        assertFalse(closed.isDone());
      }
      broker.start();
      result(call);
      assertTrue(result(closed));
    }
  }
}
