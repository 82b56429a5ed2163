# SPDX-License-Identifier: Apache-2.0
"""The stream of many calls of the client for asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio

from cryptobroker._calls import Call, Calls, Tries, late
from cryptobroker._errors import Code, CryptoBrokerError, code_of
from cryptobroker._exchange import MAX_CALLS, MAX_MESSAGE, METHOD, REPLIES, Offer, Pending, Waiting


class Exchanges:
    """The streams of a client, one at a time. A new one replaces one that has ended."""

    def __init__(self, calls: Calls, channel: grpc.aio.Channel) -> None:
        self._calls = calls
        self._open: Any = channel.stream_stream(METHOD, response_deserializer=REPLIES.FromString)
        self.offer = Offer()
        self._slots = asyncio.Semaphore(MAX_CALLS)
        self._current: _Exchange | None = None

    async def call(self, call: Call[Any], tries: Tries) -> Any:
        """Makes a call once and returns the reply, or None if the call has to be made without the stream."""
        loop = asyncio.get_running_loop()
        remaining = tries.remaining()
        if self._slots.locked():
            try:
                await asyncio.wait_for(self._slots.acquire(), remaining)
            except asyncio.TimeoutError:
                raise late(call) from None
            try:
                remaining = tries.remaining()
            except CryptoBrokerError:
                self._slots.release()
                raise
        else:
            await self._slots.acquire()
        done: asyncio.Future[bool] = loop.create_future()  # whether the call has an outcome
        waiting = Waiting(call, lambda: _settle(done, True))
        exchange = self._current
        if exchange is None or exchange.pending.ended:
            exchange = self._current = _Exchange(Pending(self._calls, self.offer, self._slots.release))
            exchange.begin(self._open)
        exchange.add(exchange.pending.add(waiting, remaining))
        timer = None if remaining is None else loop.call_later(remaining, _settle, done, False)
        try:
            answered = await done
        except asyncio.CancelledError:
            exchange.add(exchange.pending.forget(waiting))
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if not answered:
            exchange.pending.forget(waiting)  # a broker knows itself when the time of a call is over
            raise late(call)
        if waiting.error is not None:
            raise waiting.error
        return waiting.reply


def _settle(done: asyncio.Future[bool], outcome: bool) -> None:
    if not done.done():
        done.set_result(outcome)


class _Exchange:
    """One stream that many calls share. One task sends, and one receives."""

    def __init__(self, pending: Pending) -> None:
        self.pending = pending
        self._parts: list[bytes] = []
        self._wake = asyncio.Event()  # set when there is something to send, or the stream has ended
        self._task: asyncio.Task[None] | None = None

    def begin(self, open_stream: Any) -> None:
        # The event loop has only weak references to tasks.
        self._task = asyncio.get_running_loop().create_task(self._receive(open_stream))

    def add(self, part: bytes) -> None:
        """Adds to the message that is sent next."""
        if part:
            self._parts.append(part)
            self._wake.set()

    async def _send(self, stream: Any) -> None:
        """Sends until the stream ends. The receiver gets the reason of the end."""
        try:
            while not self.pending.ended:
                await self._wake.wait()
                self._wake.clear()
                while self._parts:
                    await stream.write(self._message())
        except (grpc.RpcError, grpc.aio.UsageError, asyncio.InvalidStateError):
            pass

    def _message(self) -> bytes:
        """Returns all parts that wait as one message, up to a size."""
        size = count = 0
        for part in self._parts:
            if count and size + len(part) > MAX_MESSAGE:
                break
            size += len(part)
            count += 1
        message = b"".join(self._parts[:count])
        del self._parts[:count]
        return message

    async def _receive(self, open_stream: Any) -> None:
        code: Code | None = None
        reason = "the broker has closed the stream"
        sender: asyncio.Task[None] | None = None
        try:
            stream = open_stream()
            sender = asyncio.get_running_loop().create_task(self._send(stream))
            async for message in stream:
                if not self.pending.take(message):
                    reason = "the broker shuts down"
                    stream.cancel()
                    break
        except grpc.aio.AioRpcError as error:
            code, reason = code_of(error.code().value[0]), error.details() or reason
        except (asyncio.CancelledError, grpc.aio.UsageError):  # gRPC ends calls of a channel that is closed so
            code, reason = Code.CANCELED, "the connection was closed"
        finally:
            self.pending.end(code, reason)
            if sender is not None:
                sender.cancel()
