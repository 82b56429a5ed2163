# SPDX-License-Identifier: Apache-2.0
"""The client for threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import grpc

from cryptobroker import _data_keys, _operations, _sessions, _streams, _thread_streams
from cryptobroker._calls import Call, Calls, Operation, Tries
from cryptobroker._errors import CryptoBrokerError
from cryptobroker._exchange import MAX_REQUEST
from cryptobroker._methods import method_of
from cryptobroker._results import Data, Deprecation, HashDataResult, TraceContext
from cryptobroker._settings import CHANNEL_OPTIONS, DEFAULT_RETRY_BUDGET, settings_of
from cryptobroker._thread_exchange import Exchanges
from cryptobroker._thread_streams import CipherStream, Source

P = ParamSpec("P")
T = TypeVar("T")


def _method(build: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    """Returns the method that makes a call."""

    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(build(*args, **kwargs))

    return method_of(build, method)


class Client:
    """Calls one broker over its Unix socket. It is safe for use by several threads, which share one
    connection: a program needs one client. It connects at its first call, so make that call after a fork.

    A call that ends with UNAVAILABLE, RESOURCE_EXHAUSTED or ABORTED is made again, with exponential backoff
    and full jitter, until the retry budget is spent or its time has passed. All operations can be repeated,
    because a broker stores nothing of them. If the reply of a try was lost, the broker may have made a
    signature or a ciphertext that nobody gets.

    Args:
        socket: the path of the broker's socket. The default is the value of the environment variable
            CRYPTO_BROKER_SOCKET, or else DEFAULT_SOCKET.
        profile: the profile of all calls that do not name a profile.
        timeout: the time in seconds for every call with all its tries. The default is no limit.
        retry_budget: for how many seconds after its begin a call is tried again, if the broker cannot be
            reached or is busy. With 0 there is one try. The longest wait between two tries is one second.
        exchange: whether small requests are made on one stream, which many calls share, if the broker has it. This
            is faster than unary calls. False is for comparisons.
        trace_context: returns the trace context of a call, or None. It is called once for each call, in
            the thread of the call.
        on_deprecation: is called for warnings of deprecated profiles, once for each different warning.
            Several threads may call it at one time.
    """

    def __init__(
        self,
        *,
        socket: str | os.PathLike[str] | None = None,
        profile: str = "",
        timeout: float | None = None,
        retry_budget: float = DEFAULT_RETRY_BUDGET,
        exchange: bool = True,
        trace_context: Callable[[], TraceContext | None] | None = None,
        on_deprecation: Callable[[Deprecation], None] | None = None,
    ) -> None:
        self._settings = settings_of(socket, profile, timeout, retry_budget, exchange, trace_context, on_deprecation)
        self._calls = Calls(self._settings)
        self._lock = threading.Lock()
        self._ended = threading.Condition(self._lock)  # notified when the last call ends that close waits for
        # The identities of calls that have begun and not ended. Each call changes it without the lock, for which
        # many threads would wait.
        self._active: set[int] = set()
        self._closed = False
        self._stop = threading.Event()  # set when close stops waiting for calls
        self._channel: grpc.Channel | None = None
        self._exchanges: Exchanges | None = None
        self._methods: dict[str, Any] = {}

    hash_data = _method(_operations.hash_data)
    sign_certificate = _method(_operations.sign_certificate)
    encrypt_data = _method(_operations.encrypt_data)
    decrypt_data = _method(_operations.decrypt_data)
    sign_data = _method(_operations.sign_data)
    verify_data = _method(_operations.verify_data)
    generate_data_key = _method(_data_keys.generate_data_key)
    wrap_key = _method(_data_keys.wrap_key)
    unwrap_key = _method(_data_keys.unwrap_key)
    unwrap_batch = _method(_data_keys.unwrap_batch)
    rewrap_key = _method(_data_keys.rewrap_key)
    get_public_key = _method(_data_keys.get_public_key)
    init_session = _method(_sessions.init_session)
    open_request = _method(_sessions.open_request)
    seal_reply = _method(_sessions.seal_reply)
    close_session = _method(_sessions.close_session)
    rekey_session = _method(_sessions.rekey_session)
    health = _method(_operations.health)

    def hash_stream(self, source: Source, *, profile: str = "", timeout: float | None = None) -> HashDataResult:
        """Hashes an input of any size.

        The call is made again, as other calls are, while at most 256 KiB were read. If more was read, it is made
        again only if the input is a file that can seek. An error of the input is raised as it is.

        Args:
            source: the data to hash: a file in binary mode, or pieces of bytes of any sizes.
            profile: the name of the profile. The default is the profile of the client.
            timeout: the time for the call with all its tries, in seconds.
        """
        return _thread_streams.hash_stream(self, source, _streams.hash_stream(profile, timeout))

    def encrypt_stream(
        self, source: Source, *, key_id: str, context: Data = b"", profile: str = "", timeout: float | None = None
    ) -> CipherStream:
        """Encrypts data of any size. The output has the wrapped data key in front, so decryption needs nothing else.

        The call begins when the output is read. It is made again, as other calls are, while at most 64 KiB were
        read and nothing was put out. After an error the output is not complete: discard it. An error of the
        input is raised as it is.

        Args:
            source: the data to encrypt: a file in binary mode, or pieces of bytes of any sizes.
            key_id: the id of the wrapping key. The profile has to list it.
            context: data that the stream is bound to, at most 4 KiB. Decryption needs the same context.
            profile: the name of the profile. The default is the profile of the client.
            timeout: the time for the call with all its tries, in seconds.
        """
        return CipherStream(self, source, _streams.encrypt_stream(key_id, context, profile, timeout))

    def decrypt_stream(
        self, source: Source, *, context: Data = b"", profile: str = "", timeout: float | None = None
    ) -> CipherStream:
        """Decrypts the output of encrypt_stream.

        What it puts out is authentic, but only its end without an error says that nothing is missing. The rest
        is as in encrypt_stream.

        Args:
            source: the stream to decrypt: a file in binary mode, or pieces of bytes of any sizes.
            context: the context of the stream, empty if it has none.
            profile: the name of the profile. The default is the profile of the client.
            timeout: the time for the call with all its tries, in seconds.
        """
        return CipherStream(self, source, _streams.decrypt_stream(context, profile, timeout))

    def close(self, *, timeout: float | None = None) -> None:
        """Lets new calls fail with ClientClosedError, and waits for calls that have begun. No connection is
        left. Output of encrypt_stream and decrypt_stream that was not read by then fails. It may be called again.

        Args:
            timeout: how many seconds to wait. Calls that have not ended by then fail with
                ClientClosedError. None waits for all calls.
        """
        with self._ended:
            self._closed = True
            self._ended.wait_for(lambda: not self._active, timeout)
            self._calls.stopped = True
            channel = self._channel
        self._stop.set()
        if channel is not None:
            channel.close()
        with self._ended:
            self._ended.wait_for(lambda: not self._active)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, call: Call[T]) -> T:
        self._enter(call)
        try:
            self._calls.prepare(call)
            tries = Tries(self._settings, call)
            while True:
                try:
                    reply = self._try(call, tries)
                    break
                except CryptoBrokerError as error:
                    wait = tries.wait_after(error)
                self._wait(call, tries, wait)
            return self._calls.finish(call, reply)
        finally:
            self._leave(call)

    def _try(self, call: Call[Any], tries: Tries) -> Any:
        """Makes a call once and returns the reply."""
        if self._settings.exchange and call.operation.exchanged and len(call.encoded) <= MAX_REQUEST:
            exchanges = self._exchanging()
            if exchanges.offer:
                reply = exchanges.call(call, tries)
                if reply is not None:
                    return reply
        remaining = tries.remaining()
        try:
            return self._unary(call.operation)(call.encoded, timeout=remaining)
        except grpc.RpcError as error:
            raise self._calls.failed(call, error, remaining) from None
        except ValueError:
            if self._calls.stopped:  # gRPC refuses calls of a channel that is closed
                raise call.closed() from None
            raise

    def _unary(self, operation: Operation) -> Any:
        """Returns the function of gRPC that makes a unary call."""
        method = self._methods.get(operation.path)
        if method is None:
            method = self._connected().unary_unary(operation.path, response_deserializer=operation.reply.FromString)
            self._methods[operation.path] = method
        return method

    def _connected(self) -> grpc.Channel:
        with self._lock:
            if self._channel is None:
                self._channel = grpc.insecure_channel(self._settings.target, options=CHANNEL_OPTIONS)
            return self._channel

    def _exchanging(self) -> Exchanges:
        if self._exchanges is None:
            channel = self._connected()
            with self._lock:
                self._exchanges = self._exchanges or Exchanges(self._calls, channel)
        return self._exchanges

    def _wait(self, call: Call[Any], tries: Tries, seconds: float) -> None:
        """Waits for the next try. It raises the error of the call if close has stopped waiting for calls."""
        if self._stop.wait(seconds):
            raise call.closed(tries.last)

    def _stream_error(
        self, call: Call[Any], error: Exception, unread: Exception | None, remaining: float | None
    ) -> CryptoBrokerError:
        """Returns the error of a try of a stream. It raises the error of the input if there is one."""
        if unread is not None:
            raise unread
        if isinstance(error, grpc.RpcError):
            return self._calls.failed(call, error, remaining)
        if self._calls.stopped:
            return call.closed()
        raise error

    def _check_open(self, call: Call[Any]) -> None:
        if self._closed:
            raise call.closed()

    def _enter(self, call: Call[Any]) -> None:
        """Adds a call that begins. It is added before the client is found open, so that close waits for it."""
        self._active.add(id(call))
        if self._closed:
            self._leave(call)
            raise call.closed()

    def _leave(self, call: Call[Any]) -> None:
        """Removes a call that has ended. Close sees either that or the notification."""
        self._active.remove(id(call))
        if self._closed:
            with self._ended:
                self._ended.notify_all()
