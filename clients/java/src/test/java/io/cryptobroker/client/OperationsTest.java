// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.interfaces.ECPublicKey;
import java.security.spec.ECGenParameterSpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class OperationsTest {
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

  static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  @Test
  @DisplayName("a broker with profiles is healthy")
  void health() {
    assertEquals(Health.SERVING, client.health());
  }

  @Test
  @DisplayName("a digest is the one of the algorithm of the profile")
  void digest() throws Exception {
    for (byte[] input : List.of(utf8("abc"), new byte[0], new byte[1 << 20])) {
      var got = client.hashData(new HashDataRequest(input));
      byte[] want = MessageDigest.getInstance("SHA-256").digest(input);
      assertArrayEquals(want, got.digest());
      assertEquals(HexFormat.of().formatHex(want), got.hex());
      assertEquals("sha-256", got.algorithm());
      assertNull(got.deprecation());
    }
  }

  @Test
  @DisplayName("what was encrypted with a key of the broker is decrypted")
  void encryption() {
    var key = Key.keyId("orders");
    byte[] plaintext = utf8("4711 boxes");
    byte[] aad = utf8("customer 12");
    var sealed =
        client.encryptData(
            new EncryptDataRequest(key, plaintext).profile("Orders").additionalData(aad));
    assertEquals("orders", sealed.keyId());
    var request =
        new DecryptDataRequest(
                Key.keyId(sealed.keyId()), sealed.ciphertext(), sealed.nonce(), sealed.tag())
            .profile("Orders");
    assertArrayEquals(plaintext, client.decryptData(request.additionalData(aad)).plaintext());
    var error =
        assertThrows(
            CryptoBrokerException.class,
            () -> client.decryptData(request.additionalData(utf8("customer 13"))));
    assertEquals(Code.INVALID_ARGUMENT, error.code());
  }

  @Test
  @DisplayName("a key and a nonce of the caller make the ciphertext that Java makes")
  void ownKey() throws Exception {
    byte[] key = utf8("0123456789abcdef");
    byte[] nonce = utf8("nonce of 12.");
    var cipher = Cipher.getInstance("AES/GCM/NoPadding");
    cipher.init(
        Cipher.ENCRYPT_MODE, new SecretKeySpec(key, "AES"), new GCMParameterSpec(128, nonce));
    byte[] want = cipher.doFinal(utf8("plain"));
    var got =
        client.encryptData(
            new EncryptDataRequest(Key.rawKey(key), utf8("plain")).profile("Own").nonce(nonce));
    assertArrayEquals(Arrays.copyOf(want, 5), got.ciphertext());
    assertArrayEquals(Arrays.copyOfRange(want, 5, want.length), got.tag());
    assertArrayEquals(utf8("0123456789abcdef"), key, "the key of the caller is not overwritten");
  }

  @Test
  @DisplayName("a signature is verified by the broker and by Java")
  void signatures() throws Exception {
    var generator = KeyPairGenerator.getInstance("EC");
    generator.initialize(new ECGenParameterSpec("secp256r1"));
    var pair = generator.generateKeyPair();
    PrivateKey secret = pair.getPrivate();
    byte[] input = utf8("order 4711");
    var signed =
        client.signData(
            new SignDataRequest(Key.rawKey(secret.getEncoded()), input)
                .profile("Contracts")
                .format(SignatureFormat.DER));
    assertEquals("ecdsa-with-sha-256", signed.algorithm());
    var verifier = Signature.getInstance("SHA256withECDSA");
    verifier.initVerify(pair.getPublic());
    verifier.update(input);
    assertTrue(verifier.verify(signed.signature()));
    for (boolean valid : new boolean[] {true, false}) {
      var key = Key.rawKey(pair.getPublic().getEncoded());
      var request =
          new VerifyDataRequest(key, valid ? input : utf8("order 4712"), signed.signature());
      assertEquals(
          valid,
          client.verifyData(request.profile("Contracts").format(SignatureFormat.DER)).valid());
    }
  }

  @Test
  @DisplayName("data keys are made, wrapped, unwrapped and wrapped again")
  void dataKeys() {
    byte[] context = utf8("table 3");
    var made =
        client.generateDataKey(
            new GenerateDataKeyRequest("orders").profile("Data").context(context));
    assertEquals(32, made.dataKey().length);
    var unwrap = new UnwrapKeyRequest(made.wrappedKey()).profile("Data");
    assertArrayEquals(made.dataKey(), client.unwrapKey(unwrap.context(context)).dataKey());
    assertNull(
        client
            .generateDataKey(
                new GenerateDataKeyRequest("orders").profile("Data").withoutDataKey(true))
            .dataKey());
    byte[] own = utf8("a key of 24 bytes, yes it");
    var wrapped = client.wrapKey(new WrapKeyRequest("orders", own).profile("Data"));
    var again = client.rewrapKey(new RewrapKeyRequest(wrapped.wrappedKey()).profile("Data"));
    assertTrue(again.unchanged());
    var keys =
        List.of(
            new WrappedKey(again.wrappedKey(), new byte[0]),
            new WrappedKey(made.wrappedKey(), new byte[0]));
    var batch = client.unwrapBatch(new UnwrapBatchRequest(keys).profile("Data")).keys();
    assertArrayEquals(own, batch.get(0).dataKey());
    assertNull(batch.get(1).dataKey());
    assertEquals(Code.INVALID_ARGUMENT, batch.get(1).error().code());
    assertEquals("Data", batch.get(1).error().profile());
  }

  @Test
  @DisplayName("a session is agreed on and closed")
  void sessions() throws Exception {
    var generator = KeyPairGenerator.getInstance("EC");
    generator.initialize(new ECGenParameterSpec("secp256r1"));
    byte[] spki = ((ECPublicKey) generator.generateKeyPair().getPublic()).getEncoded();
    String point =
        Base64.getEncoder().encodeToString(Arrays.copyOfRange(spki, spki.length - 65, spki.length));
    var made =
        client.initSession(
            new InitSessionRequest("ECDH_P256", point)
                .profile("Shop")
                .ttlSeconds(300)
                .nonce("n-1")
                .timestamp(Long.toString(System.currentTimeMillis())));
    assertEquals("A256GCM", made.encAlg());
    assertEquals(300, made.expiresInSeconds());
    assertEquals("session-v1", made.algorithm());
    for (int i = 0; i < 2; i++) {
      client.closeSession(new CloseSessionRequest(made.sessionId()).profile("Shop"));
    }
    var error =
        assertThrows(
            CryptoBrokerException.class,
            () ->
                client.openRequest(
                    new OpenRequestRequest("POST", "/", "session:x", "A256GCM", utf8("abc"))
                        .profile("Shop")
                        .nonce("n")));
    assertEquals("OpenRequest", error.operation());
    assertEquals("Shop", error.profile());
  }

  @Test
  @DisplayName("a warning of a deprecated profile is in each result, and told once")
  void deprecation() {
    List<Deprecation> told = new ArrayList<>();
    var want = new Deprecation("Old", "Default", "2026-01-01", "2027-01-01", "It is long.");
    try (Client warned = broker.client().profile("Old").onDeprecation(told::add).build()) {
      for (int i = 0; i < 2; i++) {
        assertEquals(want, warned.hashData(new HashDataRequest(utf8("abc"))).deprecation());
      }
    }
    assertEquals(List.of(want), told);
  }

  @Test
  @DisplayName("errors have code, operation, profile and reason")
  void errors() {
    var unknown =
        assertThrows(
            CryptoBrokerException.class,
            () -> client.hashData(new HashDataRequest(utf8("abc")).profile("Nobody's")));
    assertEquals(Code.INVALID_ARGUMENT, unknown.code());
    assertEquals("HashData", unknown.operation());
    assertEquals("Nobody's", unknown.profile());
    assertEquals(
        "HashData with profile \"Nobody's\": no profile of this name is served", unknown.reason());
    assertEquals("crypto broker: INVALID_ARGUMENT: " + unknown.reason(), unknown.getMessage());
    assertFalse(unknown.retryBudgetSpent());
    assertFalse(unknown.clientClosed());
    var refused =
        assertThrows(
            CryptoBrokerException.class,
            () -> client.signData(new SignDataRequest(Key.keyId("orders"), utf8("abc"))));
    assertEquals(Code.FAILED_PRECONDITION, refused.code());
    var large =
        assertThrows(
            CryptoBrokerException.class,
            () -> client.hashData(new HashDataRequest(new byte[4 << 20])));
    assertTrue(
        large.reason().matches(".*the request has \\d+ bytes, expected at most 4194304"),
        large.reason());
  }

  @Test
  @DisplayName("the broker gets the trace of the call, or else of the client")
  void traces(@TempDir Path own) throws Exception {
    var ids = List.of("0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736");
    try (Broker audited = Broker.started(own)) {
      var first = new TraceContext(ids.get(0), "b7ad6b7169203331", "01");
      var second = new TraceContext(ids.get(1), "b7ad6b7169203331", "01");
      try (Client traced = audited.client().traceContext(() -> first).build()) {
        traced.hashData(new HashDataRequest(utf8("abc")));
        traced.hashData(new HashDataRequest(utf8("abc")).traceContext(second));
      }
      audited.stop();
      for (String id : ids) {
        long records =
            audited.lines().stream()
                .filter(line -> line.contains("audit.chain") && line.contains(id))
                .count();
        assertEquals(1, records, id);
      }
    }
  }

  @Test
  @DisplayName("a client is not made with options that are not valid")
  void options() {
    var builder = Client.builder();
    assertThrows(IllegalArgumentException.class, () -> builder.socket(""));
    assertThrows(
        IllegalArgumentException.class, () -> builder.timeout(java.time.Duration.ofMillis(-1)));
  }
}
