// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import io.cryptobroker.client.Operations.Operation;
import io.cryptobroker.client.internal.session.v1.CloseSessionResponse;
import io.cryptobroker.client.internal.session.v1.InitSessionResponse;
import io.cryptobroker.client.internal.session.v1.OpenRequestResponse;
import io.cryptobroker.client.internal.session.v1.RekeySessionResponse;
import io.cryptobroker.client.internal.session.v1.SealReplyResponse;

/** The operations on encrypted sessions. */
final class SessionOperations {
  private static final String SERVICE = "cryptobroker.session.v1.SessionService";

  /** The operations are no calls of Exchange. */
  private static final int UNARY = 0;

  private SessionOperations() {}

  static final Operation<InitSessionRequest, InitSessionResponse, InitSessionResult> INIT_SESSION =
      new Operation<>(
          "InitSession",
          SERVICE,
          UNARY,
          (r, head) ->
              io.cryptobroker.client.internal.session.v1.InitSessionRequest.newBuilder()
                  .setProfile(head.profile())
                  .setMetadata(head.metadata())
                  .setKeyAgreement(r.keyAgreement)
                  .setClientPublicKey(r.clientPublicKey)
                  .setNonce(r.nonce)
                  .setTimestamp(r.timestamp)
                  .setClientId(r.clientId)
                  .setTtlSec(r.ttlSeconds)
                  .build()
                  .toByteArray(),
          InitSessionResponse.parser(),
          (reply, profile) ->
              new InitSessionResult(
                  reply.getSessionId(),
                  reply.getServerPublicKey(),
                  reply.getEncAlg(),
                  reply.getExpiresInSec(),
                  reply.getSignature(),
                  reply.getSignatureAlgorithm(),
                  reply.getCryptoDescriptor().getAlgorithm(),
                  Deprecation.of(reply.getMetadata())),
          InitSessionResult::deprecation);

  static final Operation<OpenRequestRequest, OpenRequestResponse, OpenRequestResult> OPEN_REQUEST =
      new Operation<>(
          "OpenRequest",
          SERVICE,
          UNARY,
          (r, head) ->
              io.cryptobroker.client.internal.session.v1.OpenRequestRequest.newBuilder()
                  .setProfile(head.profile())
                  .setMetadata(head.metadata())
                  .setMethod(r.method)
                  .setPath(r.path)
                  .setKid(r.kid)
                  .setEncAlg(r.encAlg)
                  .setBody(Request.bytes(r.body))
                  .setTimestamp(r.timestamp)
                  .setSequence(r.sequence)
                  .setIv(r.iv)
                  .setTag(r.tag)
                  .setAad(r.aad)
                  .setNonce(r.nonce)
                  .setIdempotencyKey(r.idempotencyKey)
                  .setClientId(r.clientId)
                  .build()
                  .toByteArray(),
          OpenRequestResponse.parser(),
          (reply, profile) ->
              new OpenRequestResult(
                  reply.getPlaintext().toByteArray(),
                  reply.getSessionId(),
                  reply.getPath(),
                  reply.getClientPath(),
                  reply.getSequence(),
                  reply.getClientId(),
                  reply.getCryptoDescriptor().getAlgorithm(),
                  Deprecation.of(reply.getMetadata())),
          OpenRequestResult::deprecation);

  static final Operation<RekeySessionRequest, RekeySessionResponse, RekeySessionResult>
      REKEY_SESSION =
          new Operation<>(
              "RekeySession",
              SERVICE,
              UNARY,
              (r, head) ->
                  io.cryptobroker.client.internal.session.v1.RekeySessionRequest.newBuilder()
                      .setProfile(head.profile())
                      .setMetadata(head.metadata())
                      .setMethod(r.method)
                      .setPath(r.path)
                      .setKid(r.kid)
                      .setEncAlg(r.encAlg)
                      .setBody(Request.bytes(r.body))
                      .setTimestamp(r.timestamp)
                      .setSequence(r.sequence)
                      .build()
                      .toByteArray(),
              RekeySessionResponse.parser(),
              (reply, profile) ->
                  new RekeySessionResult(
                      reply.getSessionId(),
                      reply.getPath(),
                      reply.getClientPath(),
                      reply.getSequence(),
                      reply.getCryptoDescriptor().getAlgorithm(),
                      Deprecation.of(reply.getMetadata())),
              RekeySessionResult::deprecation);

  static final Operation<SealReplyRequest, SealReplyResponse, SealReplyResult> SEAL_REPLY =
      new Operation<>(
          "SealReply",
          SERVICE,
          UNARY,
          (r, head) ->
              io.cryptobroker.client.internal.session.v1.SealReplyRequest.newBuilder()
                  .setProfile(head.profile())
                  .setMetadata(head.metadata())
                  .setSessionId(r.sessionId)
                  .setClientPath(r.clientPath)
                  .setPlaintext(Request.bytes(r.plaintext))
                  .setSequence(r.sequence)
                  .build()
                  .toByteArray(),
          SealReplyResponse.parser(),
          (reply, profile) ->
              new SealReplyResult(
                  reply.getKid(),
                  reply.getEncAlg(),
                  reply.getIv(),
                  reply.getTag(),
                  reply.getAad(),
                  reply.getNonce(),
                  reply.getTimestamp(),
                  reply.getIdempotencyKey(),
                  reply.getClientId(),
                  reply.getSequence(),
                  reply.getBody().toByteArray(),
                  reply.getCryptoDescriptor().getAlgorithm(),
                  Deprecation.of(reply.getMetadata())),
          SealReplyResult::deprecation);

  static final Operation<CloseSessionRequest, CloseSessionResponse, CloseSessionResult>
      CLOSE_SESSION =
          new Operation<>(
              "CloseSession",
              SERVICE,
              UNARY,
              (r, head) ->
                  io.cryptobroker.client.internal.session.v1.CloseSessionRequest.newBuilder()
                      .setProfile(head.profile())
                      .setMetadata(head.metadata())
                      .setSessionId(r.sessionId)
                      .build()
                      .toByteArray(),
              CloseSessionResponse.parser(),
              (reply, profile) -> new CloseSessionResult(Deprecation.of(reply.getMetadata())),
              CloseSessionResult::deprecation);
}
