// SPDX-License-Identifier: Apache-2.0

import { BinaryReader } from "@bufbuild/protobuf/wire";

import { Chunks, type Source } from "./chunks.js";
import { Ending } from "./ending.js";
import { CryptoBrokerError, type Failure, isTransient, said } from "./errors.js";
import { Exchanges, maxExchanged } from "./exchange.js";
import { wrong } from "./fields.js";
import {
  algorithmOf,
  deprecationOf,
  type Described,
  type Head,
  type Operation,
  readOnce,
} from "./operation.js";
import * as certificate from "./operations/certificate.js";
import * as cipher from "./operations/cipher.js";
import * as datakeys from "./operations/datakeys.js";
import * as hash from "./operations/hash.js";
import * as session from "./operations/session.js";
import * as signature from "./operations/signature.js";
import * as streams from "./operations/stream.js";
import {
  type CallOptions,
  type ClientOptions,
  type Deprecation,
  type Settings,
  settingsOf,
  timeoutOf,
} from "./options.js";
import { type Attempt, retry } from "./retry.js";
import { Input, Refused, stream, type Streaming, unreadable } from "./streaming.js";
import { Transport } from "./transport.js";

/**
 * maxRequest is the size in bytes of the largest request that the client sends. Brokers refuse
 * larger ones. Some brokers do so with the code of a broker that has too much to do, and the client
 * would try again in vain.
 */
const maxRequest = 4 << 20;

/**
 * Health is the health of a broker. A broker that is `NOT_SERVING` has no profiles yet, or shuts
 * down.
 */
export type Health = "UNKNOWN" | "SERVING" | "NOT_SERVING";

/**
 * Client calls one broker. A program needs one client. It connects at its first call, and again when
 * the broker was restarted.
 *
 * Every method returns a promise, which is rejected with a CryptoBrokerError if the call failed. A
 * call that ends with UNAVAILABLE, RESOURCE_EXHAUSTED or ABORTED is made again, with exponential
 * backoff and full jitter, until the retry budget is spent or the time of the call is over. All
 * operations but `health` are repeated, because a broker stores nothing of them.
 *
 * Requests are copied before a method returns. The client overwrites the messages that it makes and
 * receives after use, but not a request that it could not send, nor the copies of gRPC and of the
 * protobuf library.
 */
export class Client implements AsyncDisposable {
  readonly #settings: Settings;
  readonly #transport: Transport;
  readonly #exchanges: Exchanges;
  readonly #active = new Set<Ending>();
  readonly #warned = new Set<string>();
  #closed = false;
  #drained: (() => void) | undefined;

  /** Throws a TypeError if an option is not valid. It does not connect. */
  constructor(options: ClientOptions = {}) {
    this.#settings = settingsOf(options);
    this.#transport = new Transport(this.#settings.socket);
    this.#exchanges = new Exchanges(this.#transport);
  }

  /** Computes a digest with the algorithm of a profile. */
  hashData(request: hash.HashDataRequest, options?: CallOptions): Promise<hash.HashDataResult> {
    return this.#call(hash.hashData, request, options);
  }

  /** Issues a certificate by the rules of a profile. */
  signCertificate(
    request: certificate.SignCertificateRequest,
    options?: CallOptions,
  ): Promise<certificate.SignCertificateResult> {
    return this.#call(certificate.signCertificate, request, options);
  }

  /**
   * Encrypts with the algorithm of a profile. If the broker makes the nonce, a repeated call has
   * another nonce.
   */
  encryptData(
    request: cipher.EncryptDataRequest,
    options?: CallOptions,
  ): Promise<cipher.EncryptDataResult> {
    return this.#call(cipher.encryptData, request, options);
  }

  /**
   * Decrypts with the algorithm of a profile. The code is INVALID_ARGUMENT if the ciphertext does
   * not authenticate.
   */
  decryptData(
    request: cipher.DecryptDataRequest,
    options?: CallOptions,
  ): Promise<cipher.DecryptDataResult> {
    return this.#call(cipher.decryptData, request, options);
  }

  /** Signs with the algorithm of a profile. */
  signData(
    request: signature.SignDataRequest,
    options?: CallOptions,
  ): Promise<signature.SignDataResult> {
    return this.#call(signature.signData, request, options);
  }

  /**
   * Verifies a signature. The code is INVALID_ARGUMENT for a signature that does not have the
   * format, so that callers can tell a mistake from a forgery.
   */
  verifyData(
    request: signature.VerifyDataRequest,
    options?: CallOptions,
  ): Promise<signature.VerifyDataResult> {
    return this.#call(signature.verifyData, request, options);
  }

  /** Makes a data key and wraps it. A repeated call makes another data key. */
  generateDataKey(
    request: datakeys.GenerateDataKeyRequest,
    options?: CallOptions,
  ): Promise<datakeys.GenerateDataKeyResult> {
    return this.#call(datakeys.generateDataKey, request, options);
  }

  /** Wraps a data key. */
  wrapKey(
    request: datakeys.WrapKeyRequest,
    options?: CallOptions,
  ): Promise<datakeys.WrapKeyResult> {
    return this.#call(datakeys.wrapKey, request, options);
  }

  /**
   * Returns the data key of a wrapped key. The code is INVALID_ARGUMENT if the wrapped key does not
   * authenticate.
   */
  unwrapKey(
    request: datakeys.UnwrapKeyRequest,
    options?: CallOptions,
  ): Promise<datakeys.UnwrapKeyResult> {
    return this.#call(datakeys.unwrapKey, request, options);
  }

  /**
   * Returns the data keys of several wrapped keys. The promise is fulfilled even if some of them, or
   * all, could not be unwrapped. The client does not try these again.
   */
  unwrapBatch(
    request: datakeys.UnwrapBatchRequest,
    options?: CallOptions,
  ): Promise<datakeys.UnwrapBatchResult> {
    return this.#call(datakeys.unwrapBatch, request, options);
  }

  /** Wraps a wrapped key again. The data key stays in the broker. */
  rewrapKey(
    request: datakeys.RewrapKeyRequest,
    options?: CallOptions,
  ): Promise<datakeys.RewrapKeyResult> {
    return this.#call(datakeys.rewrapKey, request, options);
  }

  /** Returns the public key of a key pair. */
  getPublicKey(
    request: datakeys.GetPublicKeyRequest,
    options?: CallOptions,
  ): Promise<datakeys.GetPublicKeyResult> {
    return this.#call(datakeys.getPublicKey, request, options);
  }

  /**
   * Agrees on a key with a client of the application. If the call is repeated, the broker begins
   * another session.
   */
  initSession(
    request: session.InitSessionRequest,
    options?: CallOptions,
  ): Promise<session.InitSessionResult> {
    return this.#call(session.initSession, request, options);
  }

  /**
   * Decrypts a request of a session. The broker opens each request once. If the connection breaks
   * while the broker opens a request, the client asks again, and the broker may refuse the request
   * as opened before: then the client of the application has to send a new one.
   */
  openRequest(
    request: session.OpenRequestRequest,
    options?: CallOptions,
  ): Promise<session.OpenRequestResult> {
    return this.#call(session.openRequest, request, options);
  }

  /**
   * Encrypts a reply to a request of a session. If the call is repeated, the broker encrypts with
   * another IV and another nonce.
   */
  sealReply(
    request: session.SealReplyRequest,
    options?: CallOptions,
  ): Promise<session.SealReplyResult> {
    return this.#call(session.sealReply, request, options);
  }

  /**
   * Ends a session, and the broker overwrites its key. It is no error if there is no such session.
   */
  async closeSession(request: session.CloseSessionRequest, options?: CallOptions): Promise<void> {
    await this.#call(session.closeSession, request, options);
  }

  /**
   * Gives a session of a native version its next key, if the request of the client of the
   * application asks for it. `sealReply` makes the reply, with an empty plaintext.
   */
  rekeySession(
    request: session.RekeySessionRequest,
    options?: CallOptions,
  ): Promise<session.RekeySessionResult> {
    return this.#call(session.rekeySession, request, options);
  }

  /**
   * Reads a source to its end, and computes the digest with the algorithm of a profile. The source
   * may have any size. The call is tried again, as other calls are, if at most 256 KiB of it were
   * read. The cause of the error is an error of the source.
   */
  async hashStream(
    source: Source,
    request: streams.HashStreamRequest = {},
    options: CallOptions = {},
  ): Promise<hash.HashDataResult> {
    const { operation, method, chunk, reply } = streams.hashStream;
    const profile = this.#profileOf(operation, request, { profile: "text?" });
    const start = streams.hashStream.start(this.#head(profile, options));
    const call = { operation, profile, method, start, chunk };
    let result: hash.HashDataResult | undefined;
    for await (const message of this.#stream(call, source, streams.hashChunk, options)) {
      result = read(
        () => {
          const response = readOnce(reply, message);
          return { ...hash.hashed(response), deprecation: deprecationOf(response.metadata) };
        },
        operation,
        profile,
      );
    }
    if (result === undefined) {
      throw unreadReply(operation, profile, new Error("there is none"));
    }
    this.#tell(result.deprecation);
    return result;
  }

  /**
   * Encrypts a source of any size. The memory of client and broker does not grow with it. The output
   * has the wrapped data key in front, so `decryptStream` needs nothing else.
   *
   * The call begins with the iteration of the result. If the iteration throws, the output is not
   * complete: discard it. The call is tried again, as other calls are, while at most 64 KiB were
   * read and nothing was given out.
   */
  encryptStream(
    source: Source,
    request: streams.EncryptStreamRequest,
    options: CallOptions = {},
  ): streams.CipherStream {
    const { operation, method, fields } = streams.encryptStream;
    const profile = this.#profileOf(operation, request, fields);
    const start = streams.encryptStream.start(request, this.#head(profile, options));
    return this.#cipher({ operation, profile, method, start }, source, options);
  }

  /**
   * Decrypts what `encryptStream` has encrypted. What it gives out is authentic, but only the end of
   * the iteration says that nothing is missing: if it throws, discard the output. The rest is as in
   * `encryptStream`.
   */
  decryptStream(
    source: Source,
    request: streams.DecryptStreamRequest = {},
    options: CallOptions = {},
  ): streams.CipherStream {
    const { operation, method, fields } = streams.decryptStream;
    const profile = this.#profileOf(operation, request, fields);
    const start = streams.decryptStream.start(request, this.#head(profile, options));
    return this.#cipher({ operation, profile, method, start }, source, options);
  }

  #cipher(
    call: Omit<Streaming, "chunk">,
    source: Source,
    options: CallOptions,
  ): streams.CipherStream {
    const { operation, profile } = call;
    let result: streams.StreamResult | undefined;
    const messages = this.#stream(
      { ...call, chunk: streams.cipherMessage },
      source,
      streams.cipherChunk,
      options,
    );
    const output = async function* (tell: (r: streams.StreamResult) => void) {
      let end: streams.StreamResult | undefined;
      for await (const message of messages) {
        const reply = read(() => readOnce(streams.cipherReply, message), operation, profile);
        if (reply.chunk !== undefined) {
          yield reply.chunk;
        }
        if (reply.end !== undefined) {
          const deprecation = deprecationOf(reply.end.metadata);
          end = { algorithm: algorithmOf(reply.end), deprecation };
        }
      }
      if (end === undefined) {
        throw unreadReply(operation, profile, new Error("they have no end"));
      }
      tell(end);
    };
    const iterator = output((end) => {
      this.#tell(end.deprecation);
      result = end;
    });
    return {
      get result() {
        return result;
      },
      [Symbol.asyncIterator]: () => iterator,
    };
  }

  /** stream makes a call that streams, and gives out its replies. */
  async *#stream(
    call: Streaming,
    source: Source,
    size: number,
    options: CallOptions,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const { operation, profile } = call;
    const ending = this.#enter(options);
    let input: Input | undefined;
    try {
      if (ending.ended) {
        throw new CryptoBrokerError(operation, profile, ending.failure(operation, profile));
      }
      try {
        input = await Input.read(new Chunks(source, size));
      } catch (cause) {
        throw new CryptoBrokerError(operation, profile, unreadable(operation, profile, cause));
      }
      const { begun, replies } = await this.#begin(call, input, ending);
      if (begun !== undefined) {
        yield begun;
      }
      yield* replies;
    } catch (error) {
      throw error instanceof Refused
        ? new CryptoBrokerError(operation, profile, final(error.failure))
        : error;
    } finally {
      await input?.close();
      this.#leave(ending);
    }
  }

  /** begin makes a call until its first reply, and tries again until then. */
  async #begin(call: Streaming, input: Input, ending: Ending): Promise<Begun> {
    const { operation, profile } = call;
    const outcome = await retry<Begun>({
      operation,
      profile,
      budgetMs: this.#settings.retryBudgetMs,
      ending,
      attempt: async () => {
        if (ending.ended) {
          return { failure: ending.failure(operation, profile) };
        }
        const replies = stream(this.#transport, call, input, ending);
        try {
          const first = await replies.next();
          return { value: { begun: first.value ?? undefined, replies } };
        } catch (error) {
          if (!(error instanceof Refused)) {
            throw error;
          }
          const { failure } = error;
          return { failure: input.begun ? final(failure) : failure };
        }
      },
    });
    if ("failure" in outcome) {
      throw new CryptoBrokerError(operation, profile, outcome.failure);
    }
    return outcome.value;
  }

  /** profileOf returns the profile of a request. It throws if the request is not valid. */
  #profileOf(
    operation: string,
    request: { profile?: string },
    fields: Parameters<typeof wrong>[1],
  ): string {
    const problem = wrong(request, fields);
    if (problem !== undefined) {
      throw invalid(operation, "", problem);
    }
    return request.profile || this.#settings.profile;
  }

  /**
   * Returns the health of the broker. It is tried once: the code is UNAVAILABLE at once if the
   * broker cannot be reached.
   */
  async health(options: CallOptions = {}): Promise<Health> {
    const outcome = await this.#within("Health", "", options, (ending) =>
      this.#transport.unary("Health", "", "/grpc.health.v1.Health/Check", new Uint8Array(), ending),
    );
    // HealthCheckResponse has one field, 1, with the status.
    const reader = new BinaryReader(outcome);
    let status = 0;
    while (reader.pos < reader.len) {
      const [number, type] = reader.tag();
      if (number === 1) {
        status = reader.int32();
      } else {
        reader.skip(type);
      }
    }
    return status === 1 ? "SERVING" : status === 2 ? "NOT_SERVING" : "UNKNOWN";
  }

  /**
   * Lets new calls fail, and waits for calls that have begun. If the signal is aborted before they
   * end, they fail with the code CANCELLED, and so does the promise with the reason of the signal.
   * `close` may be called again.
   */
  async close({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    this.#closed = true;
    if (this.#active.size > 0) {
      const drained = new Promise<void>((resolve) => {
        const before = this.#drained;
        this.#drained = () => {
          before?.();
          resolve();
        };
      });
      const stop = (): void => {
        for (const ending of this.#active) {
          ending.close();
        }
      };
      if (signal?.aborted) {
        stop();
      }
      signal?.addEventListener("abort", stop, { once: true });
      await drained;
      signal?.removeEventListener("abort", stop);
    }
    this.#exchanges.close();
    this.#transport.close();
    signal?.throwIfAborted();
  }

  /** Closes the client as `close` does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** call makes a call of an operation, and tries again after transient failures. */
  async #call<Request extends { profile?: string }, Result extends Described>(
    operation: Operation<Request, Result>,
    request: Request,
    options: CallOptions = {},
  ): Promise<Result> {
    const { name } = operation;
    const profile = this.#profileOf(name, request, operation.fields);
    const named = { ...request, profile };
    const bytes = operation.encode(named, this.#head(profile, options));
    try {
      if (bytes.length > maxRequest) {
        const sentence = `the request has ${bytes.length} bytes, expected at most ${maxRequest}`;
        throw invalid(name, profile, sentence);
      }
      const reply = await this.#within(name, profile, options, (ending) =>
        retry({
          operation: name,
          profile,
          budgetMs: this.#settings.retryBudgetMs,
          ending,
          attempt: () => this.#attempt(operation, profile, bytes, ending),
        }),
      );
      const result = read(() => operation.decode(reply, named), name, profile);
      this.#tell(result.deprecation);
      return result;
    } finally {
      bytes.fill(0);
    }
  }

  /** attempt makes the call once. */
  async #attempt(
    operation: Operation<never, unknown>,
    profile: string,
    bytes: Uint8Array,
    ending: Ending,
  ): Promise<Attempt<Uint8Array>> {
    if (ending.ended) {
      return { failure: ending.failure(operation.name, profile) };
    }
    if (this.#settings.exchange && operation.number > 0 && bytes.length <= maxExchanged) {
      const outcome = await this.#exchanges.call(operation, profile, bytes, ending);
      if (outcome !== undefined) {
        return outcome;
      }
    }
    return this.#transport.unary(operation.name, profile, operation.method, bytes, ending);
  }

  /** within makes a call that ends early if its options or the end of the client say so. */
  async #within<T>(
    operation: string,
    profile: string,
    options: CallOptions,
    make: (ending: Ending) => Promise<Attempt<T>>,
  ): Promise<T> {
    const ending = this.#enter(options);
    try {
      const outcome = ending.ended
        ? { failure: ending.failure(operation, profile) }
        : await make(ending);
      if ("failure" in outcome) {
        throw new CryptoBrokerError(operation, profile, outcome.failure);
      }
      return outcome.value;
    } finally {
      this.#leave(ending);
    }
  }

  /** enter counts a call that begins. */
  #enter(options: CallOptions): Ending {
    const timeoutMs = timeoutOf(options.timeoutMs ?? this.#settings.timeoutMs);
    const ending = new Ending(timeoutMs, options.signal);
    if (this.#closed) {
      ending.close();
    }
    this.#active.add(ending);
    return ending;
  }

  /** leave counts a call that has ended. */
  #leave(ending: Ending): void {
    ending.dispose();
    this.#active.delete(ending);
    if (this.#active.size === 0) {
      this.#drained?.();
    }
  }

  #head(profile: string, options: CallOptions): Head {
    const trace = options.traceContext ?? this.#settings.traceContext?.();
    return { profile, metadata: trace && { traceContext: { ...trace } } };
  }

  /** tell calls the handler of deprecation warnings, once for each different warning. */
  #tell(deprecation: Deprecation | undefined): void {
    if (deprecation === undefined || this.#settings.onDeprecation === undefined) {
      return;
    }
    const key = JSON.stringify(deprecation);
    if (!this.#warned.has(key)) {
      this.#warned.add(key);
      this.#settings.onDeprecation(deprecation);
    }
  }
}

/** Begun is a stream with its first reply, which is undefined if there is none. */
interface Begun {
  begun: Uint8Array | undefined;
  replies: AsyncGenerator<Uint8Array, void, undefined>;
}

function invalid(operation: string, profile: string, sentence: string): CryptoBrokerError {
  const failure: Failure = {
    code: "INVALID_ARGUMENT",
    reason: said(operation, profile, sentence),
  };
  return new CryptoBrokerError(operation, profile, failure);
}

/** read returns what a function reads from a reply. */
function read<T>(decode: () => T, operation: string, profile: string): T {
  try {
    return decode();
  } catch (cause) {
    throw unreadReply(operation, profile, cause);
  }
}

function unreadReply(operation: string, profile: string, cause: unknown): CryptoBrokerError {
  const what = cause instanceof Error ? cause.message : String(cause);
  return new CryptoBrokerError(operation, profile, {
    code: "INTERNAL",
    reason: said(operation, profile, `the reply cannot be read: ${what}`),
    cause,
  });
}

/** final returns the failure of a stream that cannot be made again. */
function final(failure: Failure): Failure {
  return isTransient(failure)
    ? {
        ...failure,
        reason: `${failure.reason}; a part of the data was processed already`,
        final: true,
      }
    : failure;
}
