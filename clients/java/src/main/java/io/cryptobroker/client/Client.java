// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import java.io.InputStream;
import java.io.OutputStream;
import java.time.Duration;

/**
 * Calls one broker. A program needs one client, which all threads can use. It connects at its first
 * call, and again when the broker was restarted.
 *
 * <p>A call that ends with UNAVAILABLE, RESOURCE_EXHAUSTED or ABORTED is made again, with
 * exponential backoff and full jitter, until the retry budget is spent or the time of the call is
 * over. All operations but {@link #health} are repeated, because a broker stores nothing of them.
 * An interrupt of the thread ends its call with CANCELLED, and the thread stays interrupted.
 *
 * <p>The client overwrites the messages that it makes and receives. gRPC has copies that nothing
 * overwrites.
 */
public final class Client implements AutoCloseable {
  /** The path of the socket on which brokers listen by default. */
  public static final String DEFAULT_SOCKET = "/tmp/open-crypto-broker/crypto-broker-server.sock";

  /** The name of the environment variable with the path of the socket. */
  public static final String SOCKET_VARIABLE = "CRYPTO_BROKER_SOCKET";

  private final Calls calls;

  Client(Settings settings) {
    this.calls = new Calls(settings);
  }

  /**
   * Makes a client with the default options. It does not connect.
   *
   * @return a client
   */
  public static Client create() {
    return builder().build();
  }

  /**
   * Returns a builder for a client with options.
   *
   * @return a builder
   */
  public static ClientBuilder builder() {
    return new ClientBuilder();
  }

  /**
   * Computes a digest with the algorithm of a profile.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public HashDataResult hashData(HashDataRequest request) {
    return calls.call(Operations.HASH_DATA, request);
  }

  /**
   * Issues a certificate by the rules of a profile.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public SignCertificateResult signCertificate(SignCertificateRequest request) {
    return calls.call(Operations.SIGN_CERTIFICATE, request);
  }

  /**
   * Encrypts with the algorithm of a profile. If the broker makes the nonce, a repeated call has
   * another nonce.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public EncryptDataResult encryptData(EncryptDataRequest request) {
    return calls.call(Operations.ENCRYPT_DATA, request);
  }

  /**
   * Decrypts with the algorithm of a profile. The code is INVALID_ARGUMENT if the ciphertext does
   * not authenticate.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public DecryptDataResult decryptData(DecryptDataRequest request) {
    return calls.call(Operations.DECRYPT_DATA, request);
  }

  /**
   * Signs with the algorithm of a profile.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public SignDataResult signData(SignDataRequest request) {
    return calls.call(Operations.SIGN_DATA, request);
  }

  /**
   * Verifies a signature. The code is INVALID_ARGUMENT for a signature that does not have the
   * format.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public VerifyDataResult verifyData(VerifyDataRequest request) {
    return calls.call(Operations.VERIFY_DATA, request);
  }

  /**
   * Makes a data key and wraps it. A repeated call makes another data key.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public GenerateDataKeyResult generateDataKey(GenerateDataKeyRequest request) {
    return calls.call(Operations.GENERATE_DATA_KEY, request);
  }

  /**
   * Wraps a data key.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public WrapKeyResult wrapKey(WrapKeyRequest request) {
    return calls.call(Operations.WRAP_KEY, request);
  }

  /**
   * Returns the data key of a wrapped key. The code is INVALID_ARGUMENT if the wrapped key does not
   * authenticate.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public UnwrapKeyResult unwrapKey(UnwrapKeyRequest request) {
    return calls.call(Operations.UNWRAP_KEY, request);
  }

  /**
   * Returns the data keys of several wrapped keys. It returns even if some of them, or all, could
   * not be unwrapped. The client does not try these again.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public UnwrapBatchResult unwrapBatch(UnwrapBatchRequest request) {
    return calls.call(Operations.UNWRAP_BATCH, request);
  }

  /**
   * Wraps a wrapped key again. The data key stays in the broker.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public RewrapKeyResult rewrapKey(RewrapKeyRequest request) {
    return calls.call(Operations.REWRAP_KEY, request);
  }

  /**
   * Returns the public key of a key pair.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public GetPublicKeyResult getPublicKey(GetPublicKeyRequest request) {
    return calls.call(Operations.GET_PUBLIC_KEY, request);
  }

  /**
   * Agrees on a key with a client of the application. If the call is repeated, the broker begins
   * another session.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public InitSessionResult initSession(InitSessionRequest request) {
    return calls.call(SessionOperations.INIT_SESSION, request);
  }

  /**
   * Decrypts a request of a session. The broker opens each request once. If the connection breaks
   * while the broker opens a request, the client asks again, and the broker may refuse the request
   * as opened before: then the client of the application has to send a new one.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public OpenRequestResult openRequest(OpenRequestRequest request) {
    return calls.call(SessionOperations.OPEN_REQUEST, request);
  }

  /**
   * Encrypts a reply to a request of a session. If the call is repeated, the broker encrypts with
   * another IV and another nonce.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public SealReplyResult sealReply(SealReplyRequest request) {
    return calls.call(SessionOperations.SEAL_REPLY, request);
  }

  /**
   * Ends a session, and the broker overwrites its key. It is no error if there is no such session.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public CloseSessionResult closeSession(CloseSessionRequest request) {
    return calls.call(SessionOperations.CLOSE_SESSION, request);
  }

  /**
   * Gives a session of a native version its next key, if the request of the client of the
   * application asks for it. {@link #sealReply} makes the reply, with an empty plaintext.
   *
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public RekeySessionResult rekeySession(RekeySessionRequest request) {
    return calls.call(SessionOperations.REKEY_SESSION, request);
  }

  /**
   * Reads an input to its end, and computes the digest with the algorithm of a profile. The input
   * may have any size. The call is tried again, as other calls are, if at most 256 KiB of it were
   * read. An IOException of the input is the cause of the exception.
   *
   * @param input the input, which stays open
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public HashDataResult hashStream(InputStream input, HashStreamRequest request) {
    return calls.hashStream(input, request);
  }

  /**
   * Encrypts an input of any size. The memory of client and broker does not grow with it. The
   * output has the wrapped data key in front, so {@link #decryptStream} needs nothing else. If the
   * method throws, the output is not complete: discard it. The call is tried again, as other calls
   * are, while at most 64 KiB were read and nothing was written. An IOException of the input or the
   * output is the cause of the exception.
   *
   * @param input the input, which stays open
   * @param output the output, which stays open
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public StreamResult encryptStream(
      InputStream input, OutputStream output, EncryptStreamRequest request) {
    return calls.encryptStream(input, output, request);
  }

  /**
   * Decrypts the output of {@link #encryptStream}. What it writes is authentic, but only its return
   * says that nothing is missing: if it throws, discard the output. The rest is as in {@link
   * #encryptStream}.
   *
   * @param input the input, which stays open
   * @param output the output, which stays open
   * @param request the request
   * @return the result
   * @throws CryptoBrokerException if the call failed
   */
  public StreamResult decryptStream(
      InputStream input, OutputStream output, DecryptStreamRequest request) {
    return calls.decryptStream(input, output, request);
  }

  /**
   * Returns the health of the broker. It is tried once: the code is UNAVAILABLE at once if the
   * broker cannot be reached.
   *
   * @return the health
   * @throws CryptoBrokerException if the call failed
   */
  public Health health() {
    return calls.health();
  }

  /**
   * Lets new calls fail, waits for calls that have begun, and closes the connection. A client can
   * be closed again. If the thread is interrupted while it waits, the calls fail with CANCELLED.
   */
  @Override
  public void close() {
    close(Duration.ofNanos(Long.MAX_VALUE));
  }

  /**
   * Closes the client as {@link #close()} does, but lets calls fail with CANCELLED that have not
   * ended after a time.
   *
   * @param limit how long calls may take to end
   * @return whether all calls have ended in time
   */
  public boolean close(Duration limit) {
    return calls.close(limit);
  }
}
