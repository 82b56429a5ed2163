# SPDX-License-Identifier: Apache-2.0
"""Streams of any size: what both clients have in common."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from cryptobroker._calls import Call, Operation
from cryptobroker._errors import Code, CryptoBrokerError
from cryptobroker._operations import data, read_digest
from cryptobroker._results import Data, Deprecation, HashDataResult, StreamResult
from cryptobroker._stubs.cryptobroker.stream.v1 import stream_pb2
from cryptobroker._stubs.cryptobroker.v1 import service_pb2

T = TypeVar("T")

_SERVICE = "/cryptobroker.stream.v1.StreamService/"
_HASH_STREAM = Operation("HashData", _SERVICE + "HashStream", stream_pb2.HashStreamResponse)
_ENCRYPT_STREAM = Operation("EncryptStream", _SERVICE + "EncryptStream", stream_pb2.EncryptStreamResponse)
_DECRYPT_STREAM = Operation("DecryptStream", _SERVICE + "DecryptStream", stream_pb2.DecryptStreamResponse)

READ_ONCE = "the input cannot be read again"
PROCESSED = "a part of the data was processed already"


class Readable(Protocol):
    """An input that is read, such as a file that was opened in binary mode."""

    def read(self, size: int, /) -> Data:
        """Returns at most so many bytes, none at the end."""


class Handle:
    """Cancels a stream from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._canceled = False
        self._current: dict[str, Any] = {}

    def follow(self, work: Any) -> None:
        """Cancels this work when the stream is canceled, in place of work of the same kind."""
        with self._lock:
            self._current[type(work).__name__] = work
            canceled = self._canceled
        if canceled:
            work.cancel()

    def cancel(self) -> None:
        """Cancels the stream."""
        with self._lock:
            self._canceled = True
            works = list(self._current.values())
        for work in works:
            work.cancel()


@dataclass(slots=True)
class Stream(Generic[T]):
    """One call whose input, and perhaps output, is a stream.

    Attributes:
        call: the call. Its request is the start of the stream.
        message: the class of the messages of the request.
        size: how many bytes of the input a message has.
        handle: cancels the call.
    """

    call: Call[T]
    message: Any
    size: int
    handle: Handle = field(default_factory=Handle)

    def start(self) -> Any:
        """Returns the first message."""
        return self.message(start=self.call.request)

    def closed(self) -> CryptoBrokerError:
        """Returns the error of a stream that is read after it was closed before its end."""
        return self.call.error(Code.CANCELED, "the stream was closed before its end")

    def lacks_end(self) -> CryptoBrokerError:
        """Returns the error of a stream of replies that ends too early."""
        return self.call.error(Code.INTERNAL, "the replies cannot be read: they have no end")


def hash_stream(profile: str, timeout: float | None) -> Stream[HashDataResult]:
    """Returns the call that hashes an input."""
    start = stream_pb2.HashStreamStart(output_format=service_pb2.HASH_OUTPUT_FORMAT_RAW)
    call = Call(_HASH_STREAM, start, read_digest, profile, timeout)
    return Stream(call, stream_pb2.HashStreamRequest, 256 << 10)


def encrypt_stream(key_id: str, context: Data, profile: str, timeout: float | None) -> Stream[StreamResult]:
    """Returns the call that encrypts a stream."""
    start = stream_pb2.EncryptStreamStart(key_id=key_id, context=data("context", context))
    call = Call(_ENCRYPT_STREAM, start, _read_end, profile, timeout)
    return Stream(call, stream_pb2.EncryptStreamRequest, 64 << 10)


def decrypt_stream(context: Data, profile: str, timeout: float | None) -> Stream[StreamResult]:
    """Returns the call that decrypts a stream."""
    start = stream_pb2.DecryptStreamStart(context=data("context", context))
    call = Call(_DECRYPT_STREAM, start, _read_end, profile, timeout)
    return Stream(call, stream_pb2.DecryptStreamRequest, 64 << 10)


def _read_end(end: Any, warning: Deprecation | None) -> StreamResult:
    return StreamResult(end.descriptor.algorithm, warning)


@dataclass(slots=True)
class Chunks:
    """Cuts the pieces of an input into chunks of one size."""

    size: int
    _rest: bytearray = field(default_factory=bytearray)

    def add(self, piece: Data) -> Iterator[bytes]:
        """Returns the chunks that are complete with this piece."""
        self._rest += data("input", piece)
        while len(self._rest) >= self.size:
            yield bytes(self._rest[: self.size])
            del self._rest[: self.size]

    def rest(self) -> bytes:
        """Returns the last chunk, which may be empty."""
        return bytes(self._rest)


def position_of(source: Any) -> int | None:
    """Returns where the input begins if it can be read again from there, else None."""
    seekable = getattr(source, "seekable", None)
    if seekable is None or not seekable():
        return None
    return int(source.tell())
