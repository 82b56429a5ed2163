// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedInputStream;
import com.google.protobuf.MessageLite;
import com.google.protobuf.Parser;
import io.cryptobroker.client.internal.stream.v1.Call;
import io.cryptobroker.client.internal.v1.DecryptDataResponse;
import io.cryptobroker.client.internal.v1.DecryptMetadata;
import io.cryptobroker.client.internal.v1.EncryptDataResponse;
import io.cryptobroker.client.internal.v1.EncryptMetadata;
import io.cryptobroker.client.internal.v1.GenerateDataKeyResponse;
import io.cryptobroker.client.internal.v1.GetPublicKeyResponse;
import io.cryptobroker.client.internal.v1.HashDataResponse;
import io.cryptobroker.client.internal.v1.HashOutputFormat;
import io.cryptobroker.client.internal.v1.Metadata;
import io.cryptobroker.client.internal.v1.RewrapKeyResponse;
import io.cryptobroker.client.internal.v1.SignCertificateResponse;
import io.cryptobroker.client.internal.v1.SignDataResponse;
import io.cryptobroker.client.internal.v1.SignOutputFormat;
import io.cryptobroker.client.internal.v1.UnwrapBatchResponse;
import io.cryptobroker.client.internal.v1.UnwrapKeyResponse;
import io.cryptobroker.client.internal.v1.UnwrapResult;
import io.cryptobroker.client.internal.v1.VerifyDataResponse;
import io.cryptobroker.client.internal.v1.WrapKeyResponse;
import java.io.IOException;
import java.util.function.BiFunction;
import java.util.function.Function;

/** The unary operations of the broker: how requests become messages, and replies results. */
final class Operations {
  private static final String CRYPTO = "cryptobroker.v1.CryptoService";

  private Operations() {}

  /** What the messages of all operations have. */
  record Head(String profile, Metadata metadata) {}

  /**
   * One operation. The number is the number of its fields on Exchange, 0 if it is a unary call
   * only. The result gets the reply and the profile.
   */
  record Operation<Q, M extends MessageLite, A>(
      String name,
      String service,
      int number,
      BiFunction<Q, Head, byte[]> message,
      Parser<M> parser,
      BiFunction<M, String, A> result,
      Function<A, Deprecation> deprecation) {}

  static final Operation<HashDataRequest, HashDataResponse, HashDataResult> HASH_DATA =
      new Operation<>(
          "HashData",
          CRYPTO,
          Call.HASH_DATA_FIELD_NUMBER,
          (r, head) ->
              io.cryptobroker.client.internal.v1.HashDataRequest.newBuilder()
                  .setProfile(head.profile())
                  .setMetadata(head.metadata())
                  .setInput(Request.bytes(r.input))
                  .setOutputFormat(HashOutputFormat.HASH_OUTPUT_FORMAT_RAW)
                  .build()
                  .toByteArray(),
          HashDataResponse.parser(),
          (reply, profile) ->
              new HashDataResult(
                  present(reply.getHashValueRaw(), "digest"),
                  reply.getCryptoDescriptor().getAlgorithm(),
                  Deprecation.of(reply.getMetadata())),
          HashDataResult::deprecation);

  static final Operation<SignCertificateRequest, SignCertificateResponse, SignCertificateResult>
      SIGN_CERTIFICATE =
          new Operation<>(
              "SignCertificate",
              CRYPTO,
              Call.SIGN_CERTIFICATE_FIELD_NUMBER,
              Operations::signCertificate,
              SignCertificateResponse.parser(),
              (reply, profile) ->
                  new SignCertificateResult(
                      present(reply.getDer(), "der"),
                      reply.getCryptoDescriptor().getAlgorithm(),
                      Deprecation.of(reply.getMetadata())),
              SignCertificateResult::deprecation);

  static final Operation<EncryptDataRequest, EncryptDataResponse, EncryptDataResult> ENCRYPT_DATA =
      new Operation<>(
          "EncryptData",
          CRYPTO,
          Call.ENCRYPT_DATA_FIELD_NUMBER,
          (r, head) ->
              io.cryptobroker.client.internal.v1.EncryptDataRequest.newBuilder()
                  .setProfile(head.profile())
                  .setMetadata(head.metadata())
                  .setKeySource(r.key.source)
                  .setPlaintext(Request.bytes(r.plaintext))
                  .setEncryptMetadata(
                      EncryptMetadata.newBuilder()
                          .setNonce(Request.bytes(r.nonce))
                          .setAad(Request.bytes(r.additionalData)))
                  .build()
                  .toByteArray(),
          EncryptDataResponse.parser(),
          (reply, profile) ->
              new EncryptDataResult(
                  reply.getCiphertext().toByteArray(),
                  present(reply.getCipherMetadata().getNonce(), "nonce"),
                  present(reply.getCipherMetadata().getTag(), "tag"),
                  reply.getCipherMetadata().getKeyId(),
                  reply.getCryptoDescriptor().getAlgorithm(),
                  Deprecation.of(reply.getMetadata())),
          EncryptDataResult::deprecation);

  static final Operation<DecryptDataRequest, DecryptDataResponse, DecryptDataResult> DECRYPT_DATA =
      new Operation<>(
          "DecryptData",
          CRYPTO,
          Call.DECRYPT_DATA_FIELD_NUMBER,
          Operations::decryptData,
          DecryptDataResponse.parser(),
          (reply, profile) ->
              new DecryptDataResult(
                  reply.getPlaintext().toByteArray(), Deprecation.of(reply.getMetadata())),
          DecryptDataResult::deprecation);

  static final Operation<SignDataRequest, SignDataResponse, SignDataResult> SIGN_DATA =
      new Operation<>(
          "SignData",
          CRYPTO,
          Call.SIGN_DATA_FIELD_NUMBER,
          (r, head) ->
              io.cryptobroker.client.internal.v1.SignDataRequest.newBuilder()
                  .setProfile(head.profile())
                  .setMetadata(head.metadata())
                  .setKeySource(Key.pair(r.key, r.postQuantumKey))
                  .setInput(Request.bytes(r.input))
                  .setSignatureFormatValue(SignatureFormat.number(r.format))
                  .build()
                  .toByteArray(),
          SignDataResponse.parser(),
          (reply, profile) ->
              new SignDataResult(
                  present(reply.getSignature(), "signature"),
                  reply.getCryptoDescriptor().getAlgorithm(),
                  Deprecation.of(reply.getMetadata())),
          SignDataResult::deprecation);

  static final Operation<VerifyDataRequest, VerifyDataResponse, VerifyDataResult> VERIFY_DATA =
      new Operation<>(
          "VerifyData",
          CRYPTO,
          Call.VERIFY_DATA_FIELD_NUMBER,
          (r, head) ->
              io.cryptobroker.client.internal.v1.VerifyDataRequest.newBuilder()
                  .setProfile(head.profile())
                  .setMetadata(head.metadata())
                  .setKeySource(Key.pair(r.key, r.postQuantumKey))
                  .setInput(Request.bytes(r.input))
                  .setSignatureFormatValue(SignatureFormat.number(r.format))
                  .setSignature(Request.bytes(r.signature))
                  .build()
                  .toByteArray(),
          VerifyDataResponse.parser(),
          (reply, profile) ->
              new VerifyDataResult(reply.getValid(), Deprecation.of(reply.getMetadata())),
          VerifyDataResult::deprecation);

  static final Operation<GenerateDataKeyRequest, GenerateDataKeyResponse, GenerateDataKeyResult>
      GENERATE_DATA_KEY =
          new Operation<>(
              "GenerateDataKey",
              CRYPTO,
              Call.GENERATE_DATA_KEY_FIELD_NUMBER,
              (r, head) ->
                  io.cryptobroker.client.internal.v1.GenerateDataKeyRequest.newBuilder()
                      .setProfile(head.profile())
                      .setMetadata(head.metadata())
                      .setKeyId(r.keyId)
                      .setContext(Request.bytes(r.context))
                      .setWithoutDataKey(r.withoutDataKey)
                      .build()
                      .toByteArray(),
              GenerateDataKeyResponse.parser(),
              (reply, profile) ->
                  new GenerateDataKeyResult(
                      reply.getDataKey().isEmpty() ? null : reply.getDataKey().toByteArray(),
                      present(reply.getWrappedKey(), "wrapped key"),
                      reply.getCryptoDescriptor().getAlgorithm(),
                      Deprecation.of(reply.getMetadata())),
              GenerateDataKeyResult::deprecation);

  static final Operation<WrapKeyRequest, WrapKeyResponse, WrapKeyResult> WRAP_KEY =
      new Operation<>(
          "WrapKey",
          CRYPTO,
          Call.WRAP_KEY_FIELD_NUMBER,
          (r, head) ->
              io.cryptobroker.client.internal.v1.WrapKeyRequest.newBuilder()
                  .setProfile(head.profile())
                  .setMetadata(head.metadata())
                  .setKeyId(r.keyId)
                  .setContext(Request.bytes(r.context))
                  .setDataKey(Request.bytes(r.dataKey))
                  .build()
                  .toByteArray(),
          WrapKeyResponse.parser(),
          (reply, profile) ->
              new WrapKeyResult(
                  present(reply.getWrappedKey(), "wrapped key"),
                  reply.getCryptoDescriptor().getAlgorithm(),
                  Deprecation.of(reply.getMetadata())),
          WrapKeyResult::deprecation);

  static final Operation<UnwrapKeyRequest, UnwrapKeyResponse, UnwrapKeyResult> UNWRAP_KEY =
      new Operation<>(
          "UnwrapKey",
          CRYPTO,
          Call.UNWRAP_KEY_FIELD_NUMBER,
          (r, head) ->
              io.cryptobroker.client.internal.v1.UnwrapKeyRequest.newBuilder()
                  .setProfile(head.profile())
                  .setMetadata(head.metadata())
                  .setWrappedKey(Request.bytes(r.wrappedKey))
                  .setContext(Request.bytes(r.context))
                  .build()
                  .toByteArray(),
          UnwrapKeyResponse.parser(),
          (reply, profile) ->
              new UnwrapKeyResult(
                  present(reply.getDataKey(), "data key"),
                  reply.getCryptoDescriptor().getAlgorithm(),
                  Deprecation.of(reply.getMetadata())),
          UnwrapKeyResult::deprecation);

  static final Operation<UnwrapBatchRequest, UnwrapBatchResponse, UnwrapBatchResult> UNWRAP_BATCH =
      new Operation<>(
          "UnwrapBatch",
          CRYPTO,
          Call.UNWRAP_BATCH_FIELD_NUMBER,
          Operations::unwrapBatch,
          UnwrapBatchResponse.parser(),
          (reply, profile) ->
              new UnwrapBatchResult(
                  reply.getResultsList().stream().map(r -> unwrapped(r, profile)).toList(),
                  Deprecation.of(reply.getMetadata())),
          UnwrapBatchResult::deprecation);

  static final Operation<RewrapKeyRequest, RewrapKeyResponse, RewrapKeyResult> REWRAP_KEY =
      new Operation<>(
          "RewrapKey",
          CRYPTO,
          Call.REWRAP_KEY_FIELD_NUMBER,
          (r, head) ->
              io.cryptobroker.client.internal.v1.RewrapKeyRequest.newBuilder()
                  .setProfile(head.profile())
                  .setMetadata(head.metadata())
                  .setWrappedKey(Request.bytes(r.wrappedKey))
                  .setContext(Request.bytes(r.context))
                  .setKeyId(r.keyId)
                  .build()
                  .toByteArray(),
          RewrapKeyResponse.parser(),
          (reply, profile) ->
              new RewrapKeyResult(
                  present(reply.getWrappedKey(), "wrapped key"),
                  reply.getUnchanged(),
                  reply.getCryptoDescriptor().getAlgorithm(),
                  Deprecation.of(reply.getMetadata())),
          RewrapKeyResult::deprecation);

  static final Operation<GetPublicKeyRequest, GetPublicKeyResponse, GetPublicKeyResult>
      GET_PUBLIC_KEY =
          new Operation<>(
              "GetPublicKey",
              CRYPTO,
              Call.GET_PUBLIC_KEY_FIELD_NUMBER,
              (r, head) ->
                  io.cryptobroker.client.internal.v1.GetPublicKeyRequest.newBuilder()
                      .setProfile(head.profile())
                      .setMetadata(head.metadata())
                      .setKeyId(r.keyId)
                      .build()
                      .toByteArray(),
              GetPublicKeyResponse.parser(),
              (reply, profile) ->
                  new GetPublicKeyResult(
                      present(reply.getDer(), "der"),
                      reply.getPem(),
                      reply.getVersion(),
                      Deprecation.of(reply.getMetadata())),
              GetPublicKeyResult::deprecation);

  private static byte[] signCertificate(SignCertificateRequest r, Head head) {
    var message =
        io.cryptobroker.client.internal.v1.SignCertificateRequest.newBuilder()
            .setProfile(head.profile())
            .setMetadata(head.metadata())
            .setCsr(r.csr)
            .setCaPrivateKey(r.caPrivateKey)
            .setCaCert(r.caCertificate)
            .addAllCrlDistributionPoints(r.crlDistributionPoints)
            .setOutputFormat(SignOutputFormat.SIGN_OUTPUT_FORMAT_DER);
    if (r.notBefore != null) {
      message.setValidNotBefore(r.notBefore.getEpochSecond());
    }
    if (r.notAfter != null) {
      message.setValidNotAfter(r.notAfter.getEpochSecond());
    }
    if (!r.subject.isEmpty()) {
      message.setSubject(r.subject);
    }
    return message.build().toByteArray();
  }

  private static byte[] decryptData(DecryptDataRequest r, Head head) {
    var metadata =
        DecryptMetadata.newBuilder()
            .setNonce(Request.bytes(r.nonce))
            .setAad(Request.bytes(r.additionalData));
    if (r.tag.length > 0) {
      metadata.setTag(Request.bytes(r.tag));
    }
    return io.cryptobroker.client.internal.v1.DecryptDataRequest.newBuilder()
        .setProfile(head.profile())
        .setMetadata(head.metadata())
        .setKeySource(r.key.source)
        .setCiphertext(Request.bytes(r.ciphertext))
        .setDecryptMetadata(metadata)
        .build()
        .toByteArray();
  }

  private static byte[] unwrapBatch(UnwrapBatchRequest r, Head head) {
    var message =
        io.cryptobroker.client.internal.v1.UnwrapBatchRequest.newBuilder()
            .setProfile(head.profile())
            .setMetadata(head.metadata());
    for (WrappedKey key : r.keys) {
      message
          .addKeysBuilder()
          .setWrappedKey(Request.bytes(key.wrappedKey()))
          .setContext(Request.bytes(key.context()));
    }
    return message.build().toByteArray();
  }

  private static UnwrappedKey unwrapped(UnwrapResult result, String profile) {
    if (result.getCode() == 0) {
      return new UnwrappedKey(present(result.getDataKey(), "data key or error for each key"), null);
    }
    Failure failure = Failure.of(Code.of(result.getCode()), result.getMessage());
    return new UnwrappedKey(null, new CryptoBrokerException("UnwrapBatch", profile, failure));
  }

  /** Returns a field of a reply. It throws an IllegalStateException if the field is empty. */
  static byte[] present(ByteString field, String what) {
    if (field.isEmpty()) {
      throw new IllegalStateException("it has no " + what);
    }
    return field.toByteArray();
  }

  static Metadata metadata(TraceContext trace) {
    var metadata = Metadata.newBuilder();
    if (trace != null) {
      metadata
          .getTraceContextBuilder()
          .setTraceId(trace.traceId())
          .setSpanId(trace.spanId())
          .setTraceFlags(trace.traceFlags())
          .setTraceState(trace.traceState())
          .setCorrelationId(trace.correlationId());
    }
    return metadata.build();
  }

  /** Reads a HealthCheckResponse, which has one field, 1, with the status. */
  static Health health(byte[] reply) throws Refused {
    try {
      CodedInputStream in = CodedInputStream.newInstance(reply);
      int status = 0;
      for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
        if (tag == 8) {
          status = in.readEnum();
        } else {
          in.skipField(tag);
        }
      }
      return status == 1 ? Health.SERVING : status == 2 ? Health.NOT_SERVING : Health.UNKNOWN;
    } catch (IOException e) {
      throw new Refused(Failure.of(Code.INTERNAL, "Health: the reply cannot be read", e));
    }
  }
}
