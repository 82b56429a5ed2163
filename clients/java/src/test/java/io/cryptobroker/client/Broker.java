// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** A broker that can be killed and started again. */
final class Broker implements AutoCloseable {
  /** Far above what anything here takes; only a failure reaches it. */
  static final Duration WAIT_LIMIT = Duration.ofSeconds(60);

  private static final String PROFILES =
      """
      - Name: Default
        Audit: {Level: all}
        API:
          HashData: {HashAlg: sha-256}
      - Name: Old
        API:
          HashData: {HashAlg: sha-512}
        Deprecation: {ReplacedBy: Default, DeprecatedSince: 2026-01-01, RemoveAfter: 2027-01-01, Reason: It is long.}
      - Name: Orders
        API:
          EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: orders}]}
      - Name: Data
        API:
          DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: orders}]}
      - Name: Own
        API:
          EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}
      - Name: Contracts
        API:
          SignData: {SignAlg: ecdsa, HashAlg: sha-256}
      - Name: Shop
        API:
          Session: {Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}
      """;

  private final Path folder;
  final String socket;
  private Process process;
  private Thread reader;
  private final List<String> lines = new ArrayList<>();

  /** Makes the folders of a broker that does not run yet. */
  Broker(Path folder) throws IOException {
    this.folder = folder;
    this.socket = folder.resolve("s/crypto-broker-server.sock").toString();
    var mode = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
    Files.createDirectory(folder.resolve("profiles"), mode);
    Files.createDirectory(folder.resolve("keys"), mode);
    Files.writeString(folder.resolve("profiles/Profiles.yaml"), PROFILES);
    Path key = Files.writeString(folder.resolve("keys/orders.bin"), "k".repeat(32));
    Files.setPosixFilePermissions(key, PosixFilePermissions.fromString("rw-------"));
  }

  /** Starts a broker, and waits until it listens. */
  static Broker started(Path folder) throws IOException, InterruptedException {
    Broker broker = new Broker(folder);
    broker.start().await();
    return broker;
  }

  /** Starts the broker. What it returns is open when the broker listens or has ended. */
  CountDownLatch start() throws IOException {
    var builder =
        new ProcessBuilder(
            System.getenv("BROKER_BINARY"),
            "--profiles-dir",
            folder.resolve("profiles").toString(),
            "--keys-dir",
            folder.resolve("keys").toString(),
            "--socket-dir",
            folder.resolve("s").toString());
    builder.environment().keySet().removeIf(name -> name.startsWith("CRYPTO_BROKER_"));
    builder.redirectOutput(ProcessBuilder.Redirect.DISCARD);
    process = builder.start();
    var listens = new CountDownLatch(1);
    BufferedReader errors = process.errorReader(StandardCharsets.UTF_8);
    reader =
        new Thread(
            () -> {
              errors
                  .lines()
                  .forEach(
                      line -> {
                        synchronized (lines) {
                          lines.add(line);
                        }
                        if (line.contains("\"msg\":\"listening\"")) {
                          listens.countDown();
                        }
                      });
              listens.countDown();
            });
    reader.setDaemon(true);
    reader.start();
    return listens;
  }

  /** Ends the broker as a crash does. */
  void kill() throws InterruptedException {
    process.toHandle().destroyForcibly();
    process.waitFor();
    reader.join();
  }

  /** Ends the broker in order. */
  void stop() throws InterruptedException {
    // Process.destroy would close the stream that the thread reads.
    process.toHandle().destroy();
    process.waitFor();
    reader.join();
  }

  /** Stops the broker from running. It answers nothing until it is killed. */
  void suspend() throws IOException, InterruptedException {
    new ProcessBuilder("kill", "-STOP", Long.toString(process.pid())).start().waitFor();
    Path threads = Path.of("/proc/" + process.pid() + "/task");
    while (!stopped(threads)) {
      Thread.onSpinWait();
    }
  }

  private static boolean stopped(Path threads) throws IOException {
    try (var ids = Files.newDirectoryStream(threads)) {
      for (Path id : ids) {
        if (!Files.readString(id.resolve("stat")).matches("(?s)\\d+ \\(.*\\) T .*")) {
          return false;
        }
      }
    }
    return true;
  }

  /** Returns the lines that the broker has written to standard error. */
  List<String> lines() {
    synchronized (lines) {
      return List.copyOf(lines);
    }
  }

  /** Returns a builder of clients of this broker, whose calls do not hang. */
  ClientBuilder client() {
    return Client.builder().socket(socket).profile("Default").timeout(WAIT_LIMIT);
  }

  @Override
  public void close() {
    if (process != null) {
      process.toHandle().destroyForcibly();
      process.onExit().join();
    }
  }
}
