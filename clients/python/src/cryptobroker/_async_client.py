# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import grpc
import grpc.aio

from cryptobroker import _data_keys, _operations, _sessions, _streams, _thread_streams
from cryptobroker._async_exchange import Exchanges
from cryptobroker._async_streams import AsyncCipherStream, AsyncSource, in_thread, source_of
from cryptobroker._calls import Call, Calls, Operation, Tries
from cryptobroker._client import Client
from cryptobroker._errors import CryptoBrokerError
from cryptobroker._exchange import MAX_REQUEST
from cryptobroker._methods import method_of
from cryptobroker._results import Data, Deprecation, HashDataResult, StreamResult, TraceContext
from cryptobroker._settings import CHANNEL_OPTIONS, DEFAULT_RETRY_BUDGET, settings_of
from cryptobroker._thread_streams import CipherStream

P = ParamSpec("P")
T = TypeVar("T")


def _method(build: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Returns the method that makes a call."""

    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(build(*args, **kwargs))

    return method_of(build, method)


class AsyncClient:
    """The same as Client for asyncio: its methods are coroutines with the same arguments, results and errors.
    A canceled task cancels its call. One event loop may use it, the one of its first call.

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
            the task of the call.
        on_deprecation: is called for warnings of deprecated profiles, once for each different warning.
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
        self._active = 0  # how many calls have begun and not ended
        self._idle = asyncio.Event()  # set while no call is active
        self._idle.set()
        self._closed = False
        self._stop = asyncio.Event()  # set when close stops waiting for calls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._channel: grpc.aio.Channel | None = None
        self._exchanges: Exchanges | None = None
        self._threads: Client | None = None
        # The threads of streams. Inputs may use the threads of the event loop.
        self._executor = concurrent.futures.ThreadPoolExecutor(256, "crypto-broker")
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

    async def hash_stream(
        self, source: AsyncSource, *, profile: str = "", timeout: float | None = None
    ) -> HashDataResult:
        """Hashes an input of any size.

        The call is made again, as other calls are, while at most 256 KiB were read. If more was read, it is made
        again only if the input is a file that can seek. An error of the input is raised as it is.

        Args:
            source: the data to hash: a file in binary mode, or pieces of bytes of any sizes.
            profile: the name of the profile. The default is the profile of the client.
            timeout: the time for the call with all its tries, in seconds.
        """
        call = _streams.hash_stream(profile, timeout)
        given = source_of(source, call.handle)
        threads = self._in_threads(call.call)
        return await in_thread(self._executor, lambda: _thread_streams.hash_stream(threads, given, call), call.handle)

    def encrypt_stream(
        self, source: AsyncSource, *, key_id: str, context: Data = b"", profile: str = "", timeout: float | None = None
    ) -> AsyncCipherStream:
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
        return self._cipher_stream(source, _streams.encrypt_stream(key_id, context, profile, timeout))

    def decrypt_stream(
        self, source: AsyncSource, *, context: Data = b"", profile: str = "", timeout: float | None = None
    ) -> AsyncCipherStream:
        """Decrypts the output of encrypt_stream.

        What it puts out is authentic, but only its end without an error says that nothing is missing. The rest
        is as in encrypt_stream.

        Args:
            source: the stream to decrypt: a file in binary mode, or pieces of bytes of any sizes.
            context: the context of the stream, empty if it has none.
            profile: the name of the profile. The default is the profile of the client.
            timeout: the time for the call with all its tries, in seconds.
        """
        return self._cipher_stream(source, _streams.decrypt_stream(context, profile, timeout))

    def _cipher_stream(self, source: AsyncSource, stream: _streams.Stream[StreamResult]) -> AsyncCipherStream:
        given = source_of(source, stream.handle)
        threads = self._in_threads(stream.call)
        return AsyncCipherStream(self._executor, CipherStream(threads, given, stream), stream.handle)

    def _in_threads(self, call: Call[Any]) -> Client:
        """Returns the client for threads that makes the streams of this client, over a connection of its own."""
        loop = self._check_open(call)
        if self._threads is None:

            def tell(warning: Deprecation) -> None:
                loop.call_soon_threadsafe(self._calls.tell, warning)

            settings = self._settings
            self._threads = Client(
                socket=settings.socket,
                profile=settings.profile,
                timeout=settings.timeout,
                retry_budget=settings.retry_budget,
                exchange=settings.exchange,
                trace_context=settings.trace_context,
                on_deprecation=tell,
            )
        return self._threads

    async def close(self, *, timeout: float | None = None) -> None:
        """Lets new calls fail with ClientClosedError, and waits for calls that have begun. No connection is
        left. Output of encrypt_stream and decrypt_stream that was not read by then fails. It may be called again.

        Args:
            timeout: how many seconds to wait. Calls that have not ended by then fail with
                ClientClosedError. None waits for all calls.
        """
        self._closed = True
        if self._threads is not None:
            await asyncio.to_thread(self._threads.close, timeout=timeout)
        try:
            await asyncio.wait_for(self._idle.wait(), timeout)
        except asyncio.TimeoutError:
            pass
        finally:
            self._calls.stopped = True
            self._stop.set()
        if self._channel is not None:
            await self._channel.close()
        await self._idle.wait()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, call: Call[T]) -> T:
        self._enter(call)
        try:
            self._calls.prepare(call)
            tries = Tries(self._settings, call)
            while True:
                try:
                    reply = await self._try(call, tries)
                    break
                except CryptoBrokerError as error:
                    wait = tries.wait_after(error)
                await self._wait(call, tries, wait)
            return self._calls.finish(call, reply)
        finally:
            self._leave()

    async def _try(self, call: Call[Any], tries: Tries) -> Any:
        """Makes a call once and returns the reply."""
        if self._settings.exchange and call.operation.exchanged and len(call.encoded) <= MAX_REQUEST:
            exchanges = self._exchanging()
            if exchanges.offer:
                reply = await exchanges.call(call, tries)
                if reply is not None:
                    return reply
        remaining = tries.remaining()
        try:
            return await self._unary(call.operation)(call.encoded, timeout=remaining)
        except grpc.RpcError as error:
            raise self._calls.failed(call, error, remaining) from None
        except (asyncio.CancelledError, grpc.aio.UsageError):
            if self._calls.stopped:  # gRPC cancels calls of a channel that is closed, and refuses new ones
                raise call.closed() from None
            raise

    def _unary(self, operation: Operation) -> Any:
        """Returns the function of gRPC that makes a unary call."""
        method = self._methods.get(operation.path)
        if method is None:
            method = self._connected().unary_unary(operation.path, response_deserializer=operation.reply.FromString)
            self._methods[operation.path] = method
        return method

    def _connected(self) -> grpc.aio.Channel:
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self._settings.target, options=CHANNEL_OPTIONS)
        return self._channel

    def _exchanging(self) -> Exchanges:
        if self._exchanges is None:
            self._exchanges = Exchanges(self._calls, self._connected())
        return self._exchanges

    async def _wait(self, call: Call[Any], tries: Tries, seconds: float) -> None:
        """Waits for the next try. It raises the error of the call if close has stopped waiting for calls."""
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except asyncio.TimeoutError:
            return
        raise call.closed(tries.last)

    def _enter(self, call: Call[Any]) -> None:
        """Counts a call that begins."""
        self._check_open(call)
        self._active += 1
        self._idle.clear()

    def _check_open(self, call: Call[Any]) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise RuntimeError("crypto broker: found another event loop, expected the one of the client's first call")
        if self._closed:
            raise call.closed()
        return loop

    def _leave(self) -> None:
        """Counts a call that has ended."""
        self._active -= 1
        if self._active == 0:
            self._idle.set()
