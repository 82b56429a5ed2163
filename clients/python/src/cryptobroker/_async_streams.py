# SPDX-License-Identifier: Apache-2.0
"""Streams of the client for asyncio: the streams of a client for threads, run in threads.

gRPC's own streams for asyncio lose the reason of a stream that ends while the client writes.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Protocol, TypeAlias, TypeVar

from cryptobroker._results import Data, StreamResult
from cryptobroker._streams import Handle, Readable
from cryptobroker._thread_streams import CipherStream, Source

T = TypeVar("T")


class AsyncReadable(Protocol):
    """An input that is read with await, such as asyncio.StreamReader."""

    def read(self, size: int, /) -> Awaitable[Data]:
        """Returns at most so many bytes, none at the end."""


AsyncSource: TypeAlias = "AsyncReadable | AsyncIterable[Data] | Readable | Iterable[Data]"
"""The input of a stream: it is read, or it has pieces of any sizes, both with await or without. An input without
await is read in another thread."""

_PIECE = 64 << 10


def source_of(source: Any, handle: Handle) -> Source:
    """Returns the input for another thread."""
    if inspect.iscoroutinefunction(getattr(source, "read", None)):
        return _elsewhere(_reads(source), asyncio.get_running_loop(), handle)
    if not hasattr(source, "read") and isinstance(source, AsyncIterable):
        return _elsewhere(aiter(source), asyncio.get_running_loop(), handle)
    given: Source = source
    return given


async def _reads(source: AsyncReadable) -> AsyncIterator[Data]:
    while piece := await source.read(_PIECE):
        yield piece


def _elsewhere(pieces: AsyncIterator[Data], loop: asyncio.AbstractEventLoop, handle: Handle) -> Iterator[Data]:
    """Returns the pieces in another thread. The event loop reads them."""

    async def read() -> Data:
        return await anext(pieces, b"")

    while True:
        future: concurrent.futures.Future[Data] = asyncio.run_coroutine_threadsafe(read(), loop)
        handle.follow(future)
        piece = future.result()
        if not piece:
            return
        yield piece


async def in_thread(threads: concurrent.futures.Executor, work: Callable[[], T], handle: Handle) -> T:
    """Returns the result of work in another thread. The work is canceled with the task that waits for it."""
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    task = loop.run_in_executor(threads, lambda: context.run(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        handle.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # nobody else asks for it
        raise


class AsyncCipherStream(AsyncIterator[bytes]):
    """The output of a stream, in pieces. It has to be read to its end: an error says that it is not complete.

    It ends early with aclose, or at the end of an async with statement.
    """

    def __init__(self, threads: concurrent.futures.Executor, stream: CipherStream, handle: Handle) -> None:
        """AsyncClient.encrypt_stream and AsyncClient.decrypt_stream make streams."""
        self._threads = threads
        self._stream = stream
        self._handle = handle
        self._turn = asyncio.Lock()  # locked while a thread uses the stream

    @property
    def result(self) -> StreamResult:
        """How the stream was encrypted or decrypted. It raises RuntimeError before the end of the stream."""
        return self._stream.result

    def __aiter__(self) -> AsyncCipherStream:
        return self

    async def __anext__(self) -> bytes:
        async with self._turn:
            piece = await in_thread(self._threads, lambda: next(self._stream, None), self._handle)
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Ends the stream. A reader that waits gets a CanceledError, unless the stream was at its end."""
        self._handle.cancel()
        async with self._turn:
            self._stream.close()

    async def __aenter__(self) -> AsyncCipherStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()
