// SPDX-License-Identifier: Apache-2.0

export type { Source } from "./chunks.js";
export { Client, type Health } from "./client.js";
export { type Code, CryptoBrokerError } from "./errors.js";
export { type Key, keyId, rawKey } from "./key.js";
export type { Described } from "./operation.js";
export type { SignCertificateRequest, SignCertificateResult } from "./operations/certificate.js";
export type {
  DecryptDataRequest,
  DecryptDataResult,
  EncryptDataRequest,
  EncryptDataResult,
} from "./operations/cipher.js";
export type {
  GenerateDataKeyRequest,
  GenerateDataKeyResult,
  GetPublicKeyRequest,
  GetPublicKeyResult,
  RewrapKeyRequest,
  RewrapKeyResult,
  UnwrapBatchRequest,
  UnwrapBatchResult,
  UnwrapKeyRequest,
  UnwrapKeyResult,
  UnwrappedKey,
  WrapKeyRequest,
  WrapKeyResult,
  WrappedKey,
} from "./operations/datakeys.js";
export type { HashDataRequest, HashDataResult } from "./operations/hash.js";
export type {
  CloseSessionRequest,
  InitSessionRequest,
  InitSessionResult,
  OpenRequestRequest,
  OpenRequestResult,
  RekeySessionRequest,
  RekeySessionResult,
  SealReplyRequest,
  SealReplyResult,
} from "./operations/session.js";
export type {
  SignatureFormat,
  SignDataRequest,
  SignDataResult,
  VerifyDataRequest,
  VerifyDataResult,
} from "./operations/signature.js";
export type {
  CipherStream,
  DecryptStreamRequest,
  EncryptStreamRequest,
  HashStreamRequest,
  StreamResult,
} from "./operations/stream.js";
export {
  type CallOptions,
  type ClientOptions,
  DEFAULT_SOCKET,
  type Deprecation,
  SOCKET_VARIABLE,
  type TraceContext,
} from "./options.js";
