# SPDX-License-Identifier: Apache-2.0
"""Streams of the client for threads."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Generator, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc

from cryptobroker._calls import Tries
from cryptobroker._errors import CryptoBrokerError
from cryptobroker._results import Data, HashDataResult, StreamResult
from cryptobroker._streams import PROCESSED, READ_ONCE, Chunks, Handle, Readable, Stream, position_of

if TYPE_CHECKING:
    from cryptobroker._client import Client

Source: TypeAlias = "Readable | Iterable[Data]"
"""The input of a stream: a file in binary mode, or pieces of any sizes."""


class _Input:
    """An input that the thread of gRPC reads, while the thread of the call may end the try."""

    def __init__(self, source: Source, size: int) -> None:
        self._source = source
        self._size = size
        self._start = position_of(source)
        self._chunks = self._read()
        # One more than the first chunk is not read, so that a try that fails early can be repeated.
        self.first = next(self._chunks, b"")
        self.whole = len(self.first) < size
        self.begun = False  # whether more than the first chunk was read
        self._lock = threading.Lock()  # locked while a thread reads
        self._try = 0

    def messages(self, stream: Stream[Any], attempt: _Attempt) -> Iterator[Any]:
        """Returns the messages of one try."""
        self._try += 1
        number = self._try
        yield stream.start()
        if self.first:
            yield stream.message(chunk=self.first)
        while not self.whole:
            with self._lock:
                if number != self._try:
                    return  # the try has ended
                self.begun = True
                try:
                    chunk = next(self._chunks, b"")
                except Exception as error:
                    attempt.fail(error)
                    return
            if not chunk:
                return
            yield stream.message(chunk=chunk)

    def end_try(self, again: bool) -> str:
        """Ends a try. It returns why the input cannot be used again, or an empty text. With again, an input that
        can be read again is.
        """
        with self._lock:
            self._try += 1
            if not self.begun:
                return ""
            if not again or self._start is None:
                return READ_ONCE
            self._source.seek(self._start + len(self.first))  # type: ignore[union-attr]
            self._chunks = self._read()
            self.begun = False
            return ""

    def _read(self) -> Generator[bytes, None, None]:
        chunks = Chunks(self._size)
        read = getattr(self._source, "read", None)
        pieces: Iterable[Data] = iter(lambda: read(self._size), b"") if read else self._source  # type: ignore[assignment]
        for piece in pieces:
            yield from chunks.add(piece)
        if rest := chunks.rest():
            yield rest


class _Attempt:
    """One try of a stream."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._rpc: Any = None
        self._started = threading.Event()
        self.unread: Exception | None = None  # the error of the input

    def start(self, rpc: Any) -> Any:
        self._rpc = rpc
        self._started.set()
        self._handle.follow(rpc)
        return rpc

    def fail(self, error: Exception) -> None:
        """Cancels the try, so that the broker does not take what it has for the whole input."""
        self.unread = error
        self._started.wait()
        self._rpc.cancel()


def hash_stream(client: Client, source: Source, stream: Stream[HashDataResult]) -> HashDataResult:
    """Hashes an input."""
    call = stream.call
    given = _Input(source, stream.size)
    if given.whole:
        return client.hash_data(given.first, profile=call.profile, timeout=call.timeout)
    client._enter(call)
    try:
        client._calls.prepare(call)
        tries = Tries(client._settings, call)
        method = client._connected().stream_unary(
            call.operation.path,
            request_serializer=stream.message.SerializeToString,
            response_deserializer=call.operation.reply.FromString,
        )
        while True:
            remaining, attempt = tries.remaining(), _Attempt(stream.handle)
            rpc = None
            try:
                rpc = attempt.start(method.future(given.messages(stream, attempt), timeout=remaining))
                return client._calls.finish(call, rpc.result())
            except (grpc.RpcError, grpc.FutureCancelledError, ValueError) as error:
                failed = client._stream_error(call, error, attempt.unread, remaining)
                wait = tries.wait_after(failed, given.end_try(again=True))
            finally:
                if rpc is not None:
                    rpc.cancel()
            client._wait(call, tries, wait)
    finally:
        client._leave(call)


class CipherStream(Iterator[bytes]):
    """The output of a stream, in pieces. It has to be read to its end: an error says that it is not complete.

    It ends early with close, or at the end of a with statement.
    """

    def __init__(self, client: Client, source: Source, stream: Stream[StreamResult]) -> None:
        """Client.encrypt_stream and Client.decrypt_stream make streams."""
        self._client = client
        self._stream = stream
        self._result: StreamResult | None = None
        self._written = False
        self._closed = False
        self._pieces = self._run(source)

    @property
    def result(self) -> StreamResult:
        """How the stream was encrypted or decrypted. It raises RuntimeError before the end of the stream."""
        if self._result is None:
            raise RuntimeError("crypto broker: the result of a stream is known at its end")
        return self._result

    def __iter__(self) -> CipherStream:
        return self

    def __next__(self) -> bytes:
        if self._closed and self._result is None:
            raise self._stream.closed()  # the end of the iteration would say that the output is complete
        try:
            return next(self._pieces)
        except concurrent.futures.CancelledError:  # the wait for the input ended with the stream
            raise self._stream.closed() from None

    def close(self) -> None:
        """Ends the stream. Later reads raise a CanceledError, unless the stream was at its end."""
        self._closed = True
        self._pieces.close()

    def __enter__(self) -> CipherStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, source: Source) -> Generator[bytes, None, None]:
        client, call = self._client, self._stream.call
        client._check_open(call)
        client._calls.prepare(call)
        tries = Tries(client._settings, call)
        given = _Input(source, self._stream.size)
        while True:
            try:
                yield from self._attempt(given, tries.remaining())
                return
            except CryptoBrokerError as error:
                final = PROCESSED if self._written or given.end_try(again=False) else ""
                wait = tries.wait_after(error, final)
            client._wait(call, tries, wait)

    def _attempt(self, given: _Input, remaining: float | None) -> Generator[bytes, None, None]:
        client, stream, call = self._client, self._stream, self._stream.call
        method = client._connected().stream_stream(
            call.operation.path,
            request_serializer=stream.message.SerializeToString,
            response_deserializer=call.operation.reply.FromString,
        )
        attempt = _Attempt(stream.handle)
        rpc: Any = None
        try:
            rpc = attempt.start(method(given.messages(stream, attempt), timeout=remaining))
            for reply in rpc:
                if reply.HasField("end"):
                    self._result = client._calls.finish(call, reply.end)
                elif reply.chunk:
                    self._written = True
                    yield reply.chunk
        except (grpc.RpcError, ValueError) as error:
            raise client._stream_error(call, error, attempt.unread, remaining) from None
        finally:
            if rpc is not None:
                rpc.cancel()
        if self._result is None:
            raise stream.lacks_end()
