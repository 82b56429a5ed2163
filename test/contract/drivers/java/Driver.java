// SPDX-License-Identifier: Apache-2.0

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.cryptobroker.client.*;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * The driver of the Java client for the cases of the contract. README.md two directories above
 * describes drivers.
 */
class Driver {
  /** The numbers of the codes that a key of a batch can have. */
  private static final Map<Code, Integer> CODES =
      Map.of(
          Code.INVALID_ARGUMENT, 3,
          Code.NOT_FOUND, 5,
          Code.PERMISSION_DENIED, 7,
          Code.FAILED_PRECONDITION, 9,
          Code.UNAVAILABLE, 14);

  private static final Gson GSON = new Gson();

  private static Client client;

  public static void main(String[] args) throws IOException {
    var builder = Client.builder().timeout(Duration.ofMinutes(1));
    client = (List.of(args).contains("--unary") ? builder.withoutExchange() : builder).build();
    var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      JsonObject call = JsonParser.parseString(line).getAsJsonObject();
      var answer = new JsonObject();
      try {
        JsonObject reply = reply(call.get("operation").getAsString(), object(call, "request"));
        if (reply == null) {
          answer.addProperty("unsupported", true);
        } else {
          answer.add("reply", reply);
        }
      } catch (CryptoBrokerException e) {
        var error = new JsonObject();
        error.addProperty("code", e.code().name());
        error.addProperty("operation", e.operation());
        error.addProperty("profile", e.profile());
        error.addProperty("message", e.reason());
        answer.add("error", error);
      }
      System.out.println(GSON.toJson(answer));
    }
    client.close();
  }

  /** Makes a call. It returns null for an operation that the client does not have. */
  private static JsonObject reply(String operation, JsonObject r) {
    return switch (operation) {
      case "Health" -> {
        var reply = new JsonObject();
        reply.addProperty("status", client.health().name());
        yield reply;
      }
      case "HashData" -> hashed(client.hashData(with(r, new HashDataRequest(octets(r, "input")))));
      case "HashStream" ->
          hashed(client.hashStream(stream(r), with(r, new HashStreamRequest())));
      case "EncryptStream" -> {
        var output = new ByteArrayOutputStream();
        var request = new EncryptStreamRequest(text(r, "keyId")).context(octets(r, "context"));
        var result = client.encryptStream(stream(r), output, with(r, request));
        yield put(described(result.algorithm(), result.deprecation()), "output", output);
      }
      case "DecryptStream" -> {
        var output = new ByteArrayOutputStream();
        var request = new DecryptStreamRequest().context(octets(r, "context"));
        var result = client.decryptStream(stream(r), output, with(r, request));
        yield put(described(result.algorithm(), result.deprecation()), "output", output);
      }
      case "SignCertificate" -> signCertificate(r);
      case "EncryptData" -> encryptData(r);
      case "DecryptData" -> decryptData(r);
      case "SignData" -> {
        List<Key> keys = keys(r);
        var request = new SignDataRequest(keys.get(0), octets(r, "input"));
        ifSecond(keys, request::postQuantumKey);
        ifFormat(r, request::format);
        var result = client.signData(with(r, request));
        var reply = described(result.algorithm(), result.deprecation());
        yield put(reply, "signature", result.signature());
      }
      case "VerifyData" -> {
        List<Key> keys = keys(r);
        var request =
            new VerifyDataRequest(keys.get(0), octets(r, "input"), octets(r, "signature"));
        ifSecond(keys, request::postQuantumKey);
        ifFormat(r, request::format);
        var result = client.verifyData(with(r, request));
        var reply = described("", result.deprecation());
        reply.addProperty("valid", result.valid());
        yield reply;
      }
      case "GenerateDataKey" -> {
        var request =
            new GenerateDataKeyRequest(text(r, "keyId"))
                .context(octets(r, "context"))
                .withoutDataKey(r.has("withoutDataKey") && r.get("withoutDataKey").getAsBoolean());
        var result = client.generateDataKey(with(r, request));
        var reply = described(result.algorithm(), result.deprecation());
        if (result.dataKey() != null) {
          put(reply, "dataKey", result.dataKey());
        }
        yield put(reply, "wrappedKey", result.wrappedKey());
      }
      case "WrapKey" -> {
        var request =
            new WrapKeyRequest(text(r, "keyId"), octets(r, "dataKey"))
                .context(octets(r, "context"));
        var result = client.wrapKey(with(r, request));
        var reply = described(result.algorithm(), result.deprecation());
        yield put(reply, "wrappedKey", result.wrappedKey());
      }
      case "UnwrapKey" -> {
        var request =
            new UnwrapKeyRequest(octets(r, "wrappedKey")).context(octets(r, "context"));
        var result = client.unwrapKey(with(r, request));
        yield put(described(result.algorithm(), result.deprecation()), "dataKey", result.dataKey());
      }
      case "UnwrapBatch" -> unwrapBatch(r);
      case "RewrapKey" -> {
        var request =
            new RewrapKeyRequest(octets(r, "wrappedKey"))
                .context(octets(r, "context"))
                .keyId(text(r, "keyId"));
        var result = client.rewrapKey(with(r, request));
        var reply = described(result.algorithm(), result.deprecation());
        reply.addProperty("unchanged", result.unchanged());
        yield put(reply, "wrappedKey", result.wrappedKey());
      }
      case "GetPublicKey" -> {
        var result = client.getPublicKey(with(r, new GetPublicKeyRequest(text(r, "keyId"))));
        var reply = put(described("", result.deprecation()), "der", result.der());
        reply.addProperty("pem", result.pem());
        reply.addProperty("version", result.version());
        yield reply;
      }
      case "InitSession" -> {
        var request =
            new InitSessionRequest(text(r, "keyAgreement"), text(r, "clientPublicKey"))
                .ttlSeconds(r.has("ttlSec") ? r.get("ttlSec").getAsInt() : 0)
                .nonce(text(r, "nonce"))
                .timestamp(text(r, "timestamp"))
                .clientId(text(r, "clientId"));
        var result = client.initSession(with(r, request));
        var reply = fields(result, result.algorithm(), result.deprecation());
        reply.addProperty("expiresInSec", result.expiresInSeconds());
        yield reply;
      }
      case "OpenRequest" -> {
        var request =
            new OpenRequestRequest(
                    text(r, "method"),
                    text(r, "path"),
                    text(r, "kid"),
                    text(r, "encAlg"),
                    octets(r, "body"))
                .timestamp(text(r, "timestamp"))
                .sequence(text(r, "sequence"))
                .iv(text(r, "iv"))
                .tag(text(r, "tag"))
                .aad(text(r, "aad"))
                .nonce(text(r, "nonce"))
                .idempotencyKey(text(r, "idempotencyKey"))
                .clientId(text(r, "clientId"));
        var result = client.openRequest(with(r, request));
        var reply = fields(result, result.algorithm(), result.deprecation());
        yield put(reply, "plaintext", result.plaintext());
      }
      case "SealReply" -> {
        var request =
            new SealReplyRequest(text(r, "sessionId"), text(r, "clientPath"), octets(r, "plaintext"))
                .sequence(text(r, "sequence"));
        var result = client.sealReply(with(r, request));
        var reply = fields(result, result.algorithm(), result.deprecation());
        yield put(reply, "body", result.body());
      }
      case "RekeySession" -> {
        var request =
            new RekeySessionRequest(
                    text(r, "method"),
                    text(r, "path"),
                    text(r, "kid"),
                    text(r, "encAlg"),
                    octets(r, "body"))
                .timestamp(text(r, "timestamp"))
                .sequence(text(r, "sequence"));
        var result = client.rekeySession(with(r, request));
        yield fields(result, result.algorithm(), result.deprecation());
      }
      case "CloseSession" -> {
        var result = client.closeSession(with(r, new CloseSessionRequest(text(r, "sessionId"))));
        yield described("", result.deprecation());
      }
      default -> null;
    };
  }

  private static JsonObject hashed(HashDataResult result) {
    var reply = described(result.algorithm(), result.deprecation());
    return put(reply, "hashValueRaw", result.digest());
  }

  private static JsonObject signCertificate(JsonObject r) {
    var request =
        new SignCertificateRequest(text(r, "csr"))
            .caPrivateKey(text(r, "caPrivateKey"))
            .caCertificate(text(r, "caCert"))
            .subject(text(r, "subject"));
    ifTime(r, "validNotBefore", request::notBefore);
    ifTime(r, "validNotAfter", request::notAfter);
    if (r.has("crlDistributionPoints")) {
      var points = r.getAsJsonArray("crlDistributionPoints").asList();
      request.crlDistributionPoints(points.stream().map(JsonElement::getAsString).toList());
    }
    var result = client.signCertificate(with(r, request));
    return put(described(result.algorithm(), result.deprecation()), "der", result.certificate());
  }

  private static JsonObject encryptData(JsonObject r) {
    JsonObject metadata = object(r, "encryptMetadata");
    var request =
        new EncryptDataRequest(key(object(r, "keySource")), octets(r, "plaintext"))
            .nonce(octets(metadata, "nonce"))
            .additionalData(octets(metadata, "aad"));
    var result = client.encryptData(with(r, request));
    var cipher = new JsonObject();
    put(cipher, "nonce", result.nonce());
    put(cipher, "tag", result.tag());
    cipher.addProperty("keyId", result.keyId());
    var reply = described(result.algorithm(), result.deprecation());
    reply.add("cipherMetadata", cipher);
    return put(reply, "ciphertext", result.ciphertext());
  }

  private static JsonObject decryptData(JsonObject r) {
    JsonObject metadata = object(r, "decryptMetadata");
    var request =
        new DecryptDataRequest(
                key(object(r, "keySource")),
                octets(r, "ciphertext"),
                octets(metadata, "nonce"),
                octets(metadata, "tag"))
            .additionalData(octets(metadata, "aad"));
    var result = client.decryptData(with(r, request));
    return put(described("", result.deprecation()), "plaintext", result.plaintext());
  }

  private static JsonObject unwrapBatch(JsonObject r) {
    List<WrappedKey> keys = new ArrayList<>();
    if (r.has("keys")) {
      for (JsonElement element : r.getAsJsonArray("keys")) {
        JsonObject key = element.getAsJsonObject();
        keys.add(new WrappedKey(octets(key, "wrappedKey"), octets(key, "context")));
      }
    }
    var result = client.unwrapBatch(with(r, new UnwrapBatchRequest(keys)));
    var results = new com.google.gson.JsonArray();
    for (UnwrappedKey key : result.keys()) {
      var one = new JsonObject();
      if (key.error() == null) {
        put(one, "dataKey", key.dataKey());
      } else {
        one.addProperty("code", CODES.get(key.error().code()));
        one.addProperty("message", key.error().reason());
      }
      results.add(one);
    }
    var reply = described("", result.deprecation());
    reply.add("results", results);
    return reply;
  }

  /** Sets what all requests have. */
  private static <T extends Request<T>> T with(JsonObject r, T request) {
    return request.profile(text(r, "profile"));
  }

  private static JsonObject described(String algorithm, Deprecation warning) {
    var reply = new JsonObject();
    if (!algorithm.isEmpty()) {
      var descriptor = new JsonObject();
      descriptor.addProperty("algorithm", algorithm);
      reply.add("descriptor", descriptor);
    }
    if (warning != null) {
      var deprecation = new JsonObject();
      deprecation.addProperty("profile", warning.profile());
      deprecation.addProperty("replacedBy", warning.replacedBy());
      deprecation.addProperty("deprecatedSince", warning.since());
      deprecation.addProperty("removeAfter", warning.removeAfter());
      deprecation.addProperty("reason", warning.reason());
      var metadata = new JsonObject();
      metadata.add("deprecation", deprecation);
      reply.add("metadata", metadata);
    }
    return reply;
  }

  /** A reply with all fields of a result, and with what {@link #described} has. */
  private static JsonObject fields(Record result, String algorithm, Deprecation warning) {
    var reply = GSON.toJsonTree(result).getAsJsonObject();
    reply.asMap().putAll(described(algorithm, warning).asMap());
    return reply;
  }

  private static List<Key> keys(JsonObject r) {
    JsonObject source = object(r, "keySource");
    if (!source.has("componentKeys")) {
      return List.of(key(object(source, "single")));
    }
    var keys = object(source, "componentKeys").getAsJsonArray("keys").asList();
    return keys.stream().map(key -> key(key.getAsJsonObject())).toList();
  }

  private static Key key(JsonObject source) {
    return source.has("rawKey")
        ? Key.rawKey(octets(source, "rawKey"))
        : Key.keyId(text(source, "keyId"));
  }

  private static void ifSecond(List<Key> keys, Consumer<Key> set) {
    if (keys.size() > 1) {
      set.accept(keys.get(1));
    }
  }

  private static void ifFormat(JsonObject r, Consumer<SignatureFormat> set) {
    String format = text(r, "signatureFormat").replace("SIGNATURE_FORMAT_", "");
    if (!format.isEmpty() && !format.equals("UNSPECIFIED")) {
      set.accept(SignatureFormat.valueOf(format));
    }
  }

  private static void ifTime(JsonObject r, String name, Consumer<Instant> set) {
    if (r.has(name)) {
      set.accept(Instant.ofEpochSecond(r.get(name).getAsLong()));
    }
  }

  private static JsonObject object(JsonObject r, String name) {
    return r.has(name) ? r.getAsJsonObject(name) : new JsonObject();
  }

  private static String text(JsonObject r, String name) {
    return r.has(name) ? r.get(name).getAsString() : "";
  }

  private static byte[] octets(JsonObject r, String name) {
    return Base64.getDecoder().decode(text(r, name));
  }

  private static ByteArrayInputStream stream(JsonObject r) {
    return new ByteArrayInputStream(octets(r, "input"));
  }

  private static JsonObject put(JsonObject reply, String name, byte[] value) {
    reply.addProperty(name, Base64.getEncoder().encodeToString(value));
    return reply;
  }

  private static JsonObject put(JsonObject reply, String name, ByteArrayOutputStream value) {
    return put(reply, name, value.toByteArray());
  }
}
