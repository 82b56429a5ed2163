// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.time.Duration;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** The options of a client. Setters return the builder itself. */
public final class ClientBuilder {
  private String socket;
  private String profile = "";
  private Duration retryBudget = Duration.ofSeconds(60);
  private Duration timeout = Duration.ZERO;
  private boolean exchange = true;
  private Supplier<TraceContext> traceContext = () -> null;
  private Consumer<Deprecation> onDeprecation = warning -> {};

  ClientBuilder() {}

  /**
   * Sets the path of the broker's socket. The default is the value of the environment variable
   * CRYPTO_BROKER_SOCKET, or else {@link Client#DEFAULT_SOCKET}.
   *
   * @param socket a path
   * @return this builder
   * @throws IllegalArgumentException if it is empty
   */
  public ClientBuilder socket(String socket) {
    if (socket.isEmpty()) {
      throw new IllegalArgumentException("the path of the socket is empty, expected a path");
    }
    this.socket = socket;
    return this;
  }

  /**
   * Sets the profile of all requests that do not name a profile.
   *
   * @param profile the name of a profile
   * @return this builder
   */
  public ClientBuilder profile(String profile) {
    this.profile = Objects.requireNonNull(profile, "profile");
    return this;
  }

  /**
   * Sets for how long after its begin a call is tried again, if the broker cannot be reached or is
   * busy. The default is 60 seconds. With zero there is one try. The longest wait between two tries
   * is one second.
   *
   * @param retryBudget zero or a positive duration
   * @return this builder
   * @throws IllegalArgumentException if it is negative
   */
  public ClientBuilder retryBudget(Duration retryBudget) {
    this.retryBudget = Settings.notNegative("retryBudget", retryBudget);
    return this;
  }

  /**
   * Sets the time of every call with all its tries. The default, zero, is no limit.
   *
   * @param timeout zero or a positive duration
   * @return this builder
   * @throws IllegalArgumentException if it is negative
   */
  public ClientBuilder timeout(Duration timeout) {
    this.timeout = Settings.notNegative("timeout", timeout);
    return this;
  }

  /**
   * Sets a function that returns the trace context of a call, or null. The client calls it once for
   * each call, in the thread of the call.
   *
   * @param traceContext a function of any tracing library
   * @return this builder
   */
  public ClientBuilder traceContext(Supplier<TraceContext> traceContext) {
    this.traceContext = Objects.requireNonNull(traceContext, "traceContext");
    return this;
  }

  /**
   * Sets a handler that gets warnings of deprecated profiles, each different warning once. Several
   * threads may call it at one time.
   *
   * @param onDeprecation the handler
   * @return this builder
   */
  public ClientBuilder onDeprecation(Consumer<Deprecation> onDeprecation) {
    this.onDeprecation = Objects.requireNonNull(onDeprecation, "onDeprecation");
    return this;
  }

  /**
   * Makes each request a unary call, even if the broker has the stream for many calls. Unary calls
   * are slower. This is for comparisons.
   *
   * @return this builder
   */
  public ClientBuilder withoutExchange() {
    this.exchange = false;
    return this;
  }

  /**
   * Makes a client. It does not connect.
   *
   * @return a client
   * @throws UnsupportedOperationException if the system is not Linux on x86-64 or arm64
   */
  public Client build() {
    String path = socket == null ? System.getenv(Client.SOCKET_VARIABLE) : socket;
    if (path == null || path.isEmpty()) {
      path = Client.DEFAULT_SOCKET;
    }
    return new Client(
        new Settings(path, profile, retryBudget, timeout, exchange, traceContext, onDeprecation));
  }
}
