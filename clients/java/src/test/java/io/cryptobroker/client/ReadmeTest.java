// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReadmeTest {
  private static final String DIGEST =
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

  @TempDir Path folder;

  /** Runs a program of the README as a user does, and returns what it prints. */
  private String run(String name, Broker broker) throws Exception {
    String readme = Files.readString(Path.of("README.md"));
    var code = Pattern.compile("`" + name + "`:\n\n```java\n(.*?)```", Pattern.DOTALL);
    var found = code.matcher(readme);
    assertTrue(found.find(), "the README has no program " + name);
    Path program = Files.writeString(folder.resolve(name), found.group(1));
    var builder =
        new ProcessBuilder(
            ProcessHandle.current().info().command().orElseThrow(),
            "-cp",
            "target/classes:target/lib/*",
            program.toString());
    builder.environment().put(Client.SOCKET_VARIABLE, broker.socket);
    Process process = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, process.waitFor(), output);
    return output;
  }

  @Test
  @DisplayName("the programs of the README do what it says")
  void programs() throws Exception {
    try (Broker broker = Broker.started(folder)) {
      assertEquals("sha-256 " + DIGEST + "\n", run("First.java", broker));
      assertEquals(
          """
          4711 boxes
          FAILED_PRECONDITION SignData Orders
          SignData with profile "Orders": the profile does not offer this operation
          """,
          run("Orders.java", broker));
    }
  }
}
