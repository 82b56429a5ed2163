// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.SequenceInputStream;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class StreamTest {
  @TempDir static Path folder;
  private static Broker broker;
  private static Client client;

  @BeforeAll
  static void start() throws Exception {
    broker = Broker.started(folder);
    client = broker.client().build();
  }

  @AfterAll
  static void stop() throws Exception {
    client.close();
    broker.close();
  }

  private static byte[] random(int size) {
    byte[] bytes = new byte[size];
    new Random(size).nextBytes(bytes);
    return bytes;
  }

  private static EncryptStreamRequest encryption() {
    return new EncryptStreamRequest("orders")
        .profile("Data")
        .context(OperationsTest.utf8("table 3"));
  }

  private static DecryptStreamRequest decryption() {
    return new DecryptStreamRequest().profile("Data").context(OperationsTest.utf8("table 3"));
  }

  private static byte[] encrypted(byte[] input) {
    var output = new ByteArrayOutputStream();
    var result = client.encryptStream(new ByteArrayInputStream(input), output, encryption());
    assertEquals("aes256-gcm-hkdf-64kb", result.algorithm());
    return output.toByteArray();
  }

  @ParameterizedTest(name = "{0} bytes are hashed, encrypted and decrypted")
  @ValueSource(ints = {0, 1, 64 << 10, (64 << 10) + 1, 256 << 10, 3_000_000})
  void anySize(int size) throws Exception {
    byte[] input = random(size);
    var hashed = client.hashStream(new ByteArrayInputStream(input), new HashStreamRequest());
    assertArrayEquals(MessageDigest.getInstance("SHA-256").digest(input), hashed.digest());
    var output = new ByteArrayOutputStream();
    client.decryptStream(new ByteArrayInputStream(encrypted(input)), output, decryption());
    assertArrayEquals(input, output.toByteArray());
  }

  @Test
  @DisplayName("a stream that was changed or cut does not end well")
  void changed() {
    byte[] sealed = encrypted(random(200_000));
    byte[] changed = sealed.clone();
    changed[changed.length - 1] ^= 1;
    for (byte[] input : new byte[][] {changed, Arrays.copyOf(sealed, sealed.length - 1)}) {
      var error =
          assertThrows(
              CryptoBrokerException.class,
              () ->
                  client.decryptStream(
                      new ByteArrayInputStream(input), new ByteArrayOutputStream(), decryption()));
      assertEquals(Code.INVALID_ARGUMENT, error.code());
      assertEquals("DecryptStream", error.operation());
    }
  }

  @Test
  @DisplayName("an error of the input or the output is the cause of the error")
  void broken() {
    var gone = new IOException("the disk is gone");
    InputStream bad =
        new InputStream() {
          @Override
          public int read() throws IOException {
            throw gone;
          }
        };
    for (int before : new int[] {0, 1_000_000}) {
      var error =
          assertThrows(
              CryptoBrokerException.class,
              () ->
                  client.encryptStream(
                      new SequenceInputStream(new ByteArrayInputStream(random(before)), bad),
                      OutputStream.nullOutputStream(),
                      encryption()));
      assertEquals(Code.UNKNOWN, error.code());
      assertSame(gone, error.getCause());
    }
    OutputStream full =
        new OutputStream() {
          @Override
          public void write(int b) throws IOException {
            throw gone;
          }
        };
    var error =
        assertThrows(
            CryptoBrokerException.class,
            () ->
                client.encryptStream(
                    new ByteArrayInputStream(random(1_000_000)), full, encryption()));
    assertSame(gone, error.getCause());
  }
}
