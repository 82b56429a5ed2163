// SPDX-License-Identifier: Apache-2.0

import {
  CloseSessionRequest as CloseMessage,
  CloseSessionResponse,
  InitSessionRequest as InitMessage,
  InitSessionResponse,
  OpenRequestRequest as OpenMessage,
  OpenRequestResponse,
  RekeySessionRequest as RekeyMessage,
  RekeySessionResponse,
  SealReplyRequest as SealMessage,
  SealReplyResponse,
} from "../messages/cryptobroker/session/v1/session.js";
import { algorithmOf, type Described, nonEmpty, operation, present } from "../operation.js";

const service = "cryptobroker.session.v1.SessionService";

/**
 * InitSessionRequest is the request of a client of the application for an encrypted session, with
 * the texts that the client sent.
 */
export interface InitSessionRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** The field keyAgreement of the body. */
  keyAgreement: string;
  /** The field clientPublicKey of the body. */
  clientPublicKey: string;
  /** The field ttlSec of the body: the lifetime in seconds that the client asks for. */
  ttlSeconds?: number;
  /** The header X-Nonce. It is absent in the native versions. */
  nonce?: string;
  /** The header X-Timestamp. It is absent in the native versions. */
  timestamp?: string;
  /** The header X-ClientId of version 2 of the protocol. */
  clientId?: string;
}

/** InitSessionResult has the fields of the reply to the client of the application. */
export interface InitSessionResult extends Described {
  sessionId: string;
  serverPublicKey: string;
  encAlg: string;
  /** The lifetime of the session in seconds. */
  expiresInSeconds: number;
  /** The signature of a native version in base64, else empty. */
  signature: string;
  /** The algorithm of the signature, such as "ecdsa-with-sha-256", else empty. */
  signatureAlgorithm: string;
  /** The version of the protocol, such as "session-v1". */
  algorithm: string;
}

export const initSession = operation<
  InitSessionRequest,
  InitSessionResult,
  InitMessage,
  InitSessionResponse
>({
  name: "InitSession",
  service,
  number: 0,
  fields: {
    keyAgreement: "text",
    clientPublicKey: "text",
    ttlSeconds: "count?",
    nonce: "text?",
    timestamp: "text?",
    clientId: "text?",
  },
  request: InitMessage,
  reply: InitSessionResponse,
  message: ({ ttlSeconds, ...texts }, head) => ({ ...texts, ...head, ttlSec: ttlSeconds }),
  result: (reply) => ({
    sessionId: nonEmpty(reply.sessionId, "session"),
    serverPublicKey: nonEmpty(reply.serverPublicKey, "public key"),
    encAlg: reply.encAlg ?? "",
    expiresInSeconds: reply.expiresInSec ?? 0,
    signature: reply.signature ?? "",
    signatureAlgorithm: reply.signatureAlgorithm ?? "",
    algorithm: algorithmOf(reply),
  }),
});

/** RekeySessionRequest is a request of a native version for the next key of its session. */
export interface RekeySessionRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** The method of the HTTP request. */
  method: string;
  /** The path of the HTTP request, without a query. */
  path: string;
  /** The header X-Kid. */
  kid: string;
  /** The header X-Enc-Alg. */
  encAlg: string;
  /** The header X-Timestamp of version 1 and of the native versions. */
  timestamp?: string;
  /** The header X-Sequence of the native versions. */
  sequence?: string;
  /** The body, at most 1 MiB. */
  body: Uint8Array;
}

/** OpenRequestRequest is an encrypted request of a client, with the texts that the client sent. */
export interface OpenRequestRequest extends RekeySessionRequest {
  /** The header X-IV of version 1. */
  iv?: string;
  /** The header X-Tag of version 1. */
  tag?: string;
  /** The header X-AAD of version 1. */
  aad?: string;
  /** The header X-Nonce of version 1. */
  nonce?: string;
  /** The header X-Idempotency-Key of version 2. */
  idempotencyKey?: string;
  /** The header X-ClientId of version 2. */
  clientId?: string;
}

/** RekeySessionResult is the result of `rekeySession`. `sealReply` makes the reply. */
export interface RekeySessionResult extends Described {
  sessionId: string;
  /** The path in its normal form: the one to serve. */
  path: string;
  /** The path as the client has authenticated it, for `sealReply`. */
  clientPath: string;
  /** The sequence of a request of a native version, for `sealReply`. */
  sequence: string;
  /** The version of the protocol, such as "session-v1". */
  algorithm: string;
}

/** OpenRequestResult is the result of `openRequest`. */
export interface OpenRequestResult extends RekeySessionResult {
  plaintext: Uint8Array;
  /** The client id of a session of version 2. */
  clientId: string;
}

const common = {
  method: "text",
  path: "text",
  kid: "text",
  encAlg: "text",
  timestamp: "text?",
  sequence: "text?",
  body: "bytes",
} as const;

function rekeyed(reply: RekeySessionResponse): Omit<RekeySessionResult, "deprecation"> {
  return {
    sessionId: nonEmpty(reply.sessionId, "session"),
    path: reply.path ?? "",
    clientPath: reply.clientPath ?? "",
    sequence: reply.sequence ?? "",
    algorithm: algorithmOf(reply),
  };
}

export const openRequest = operation<
  OpenRequestRequest,
  OpenRequestResult,
  OpenMessage,
  OpenRequestResponse
>({
  name: "OpenRequest",
  service,
  number: 0,
  fields: {
    ...common,
    iv: "text?",
    tag: "text?",
    aad: "text?",
    nonce: "text?",
    idempotencyKey: "text?",
    clientId: "text?",
  },
  request: OpenMessage,
  reply: OpenRequestResponse,
  message: (r, head) => ({ ...r, ...head }),
  result: (reply) => ({
    ...rekeyed(reply),
    plaintext: present(reply.plaintext, "plaintext"),
    clientId: reply.clientId ?? "",
  }),
});

export const rekeySession = operation<
  RekeySessionRequest,
  RekeySessionResult,
  RekeyMessage,
  RekeySessionResponse
>({
  name: "RekeySession",
  service,
  number: 0,
  fields: common,
  request: RekeyMessage,
  reply: RekeySessionResponse,
  message: (r, head) => ({ ...r, ...head }),
  result: rekeyed,
});

/** SealReplyRequest is a reply to a client of the application. */
export interface SealReplyRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  /** The session of the result of `openRequest`. */
  sessionId: string;
  /** The client path of the result of `openRequest`. */
  clientPath: string;
  /** The sequence of the result of `openRequest`. */
  sequence?: string;
  /** The body of the reply, at most 1 MiB. */
  plaintext: Uint8Array;
}

/**
 * SealReplyResult has headers and body of the reply. Headers that are empty do not belong to the
 * version of the protocol.
 */
export interface SealReplyResult extends Described {
  kid: string;
  encAlg: string;
  iv: string;
  tag: string;
  aad: string;
  nonce: string;
  timestamp: string;
  idempotencyKey: string;
  clientId: string;
  sequence: string;
  body: Uint8Array;
  /** The version of the protocol, such as "session-v1". */
  algorithm: string;
}

export const sealReply = operation<
  SealReplyRequest,
  SealReplyResult,
  SealMessage,
  SealReplyResponse
>({
  name: "SealReply",
  service,
  number: 0,
  fields: { sessionId: "text", clientPath: "text", sequence: "text?", plaintext: "bytes" },
  request: SealMessage,
  reply: SealReplyResponse,
  message: (r, head) => ({ ...r, ...head }),
  result: (reply) => ({
    kid: nonEmpty(reply.kid, "session"),
    encAlg: reply.encAlg ?? "",
    iv: reply.iv ?? "",
    tag: reply.tag ?? "",
    aad: reply.aad ?? "",
    nonce: reply.nonce ?? "",
    timestamp: reply.timestamp ?? "",
    idempotencyKey: reply.idempotencyKey ?? "",
    clientId: reply.clientId ?? "",
    sequence: reply.sequence ?? "",
    body: present(reply.body, "body"),
    algorithm: algorithmOf(reply),
  }),
});

/** CloseSessionRequest is a request to end a session. */
export interface CloseSessionRequest {
  /** The name of the profile. The default is the profile of the client. */
  profile?: string;
  sessionId: string;
}

export const closeSession = operation<
  CloseSessionRequest,
  Described,
  CloseMessage,
  CloseSessionResponse
>({
  name: "CloseSession",
  service,
  number: 0,
  fields: { sessionId: "text" },
  request: CloseMessage,
  reply: CloseSessionResponse,
  message: (r, head) => ({ ...r, ...head }),
  result: () => ({}),
});
