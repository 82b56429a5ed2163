# SPDX-License-Identifier: Apache-2.0
"""The stream of many calls of the client for threads."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

import grpc

from cryptobroker._calls import Call, Calls, Tries, late
from cryptobroker._errors import Code, CryptoBrokerError, code_of
from cryptobroker._exchange import MAX_CALLS, MAX_MESSAGE, METHOD, REPLIES, Offer, Pending, Waiting


class Exchanges:
    """The streams of a client, one at a time. A new one replaces one that has ended."""

    def __init__(self, calls: Calls, channel: grpc.Channel) -> None:
        self._calls = calls
        self._open: Any = channel.stream_stream(METHOD, response_deserializer=REPLIES.FromString)
        self.offer = Offer()
        self._slots = threading.Semaphore(MAX_CALLS)
        self._lock = threading.Lock()
        self._current: _Exchange | None = None

    def call(self, call: Call[Any], tries: Tries) -> Any:
        """Makes a call once and returns the reply, or None if the call has to be made without the stream."""
        remaining = _bounded(tries.remaining())
        if not self._slots.acquire(blocking=False):
            if not self._slots.acquire(timeout=remaining):
                raise late(call)
            try:
                remaining = _bounded(tries.remaining())
            except CryptoBrokerError:
                self._slots.release()
                raise
        ready = threading.Lock()
        ready.acquire()
        waiting = Waiting(call, ready.release)
        exchange = self._add(waiting, remaining)
        try:
            answered = ready.acquire(timeout=-1 if remaining is None else remaining)
        except BaseException:
            exchange.forget(waiting, give_up=True)
            raise
        # A broker knows itself when the time of a call is over.
        if not answered and exchange.forget(waiting, give_up=False):
            raise late(call)
        if waiting.error is not None:
            raise waiting.error
        return waiting.reply

    def _add(self, waiting: Waiting, remaining: float | None) -> _Exchange:
        """Puts a call on the current stream, or on the next one if that has ended."""
        exchange = self._current
        if exchange is not None and exchange.add(waiting, remaining):
            return exchange
        with self._lock:
            exchange = self._current
            if exchange is None or not exchange.add(waiting, remaining):
                # The stream has its first call before it begins, so it has not ended by then.
                exchange = _Exchange(Pending(self._calls, self.offer, self._slots.release))
                exchange.add(waiting, remaining)
                exchange.begin(self._open)
                self._current = exchange
            return exchange


def _bounded(remaining: float | None) -> float | None:
    """Returns a time that locks can wait for."""
    return None if remaining is None else min(remaining, threading.TIMEOUT_MAX)


class _Exchange:
    """One stream that many calls share. One thread sends, in which gRPC reads messages, and one receives."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending
        self._lock = threading.Lock()  # locked while a thread uses the pending calls
        self._parts: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()  # None is the end

    def begin(self, open_stream: Any) -> None:
        threading.Thread(target=self._receive, args=(open_stream,), name="crypto-broker", daemon=True).start()

    def add(self, waiting: Waiting, remaining: float | None) -> bool:
        """Puts a call on the stream. It reports whether the stream has not ended."""
        with self._lock:
            if self._pending.ended:
                return False
            self._parts.put(self._pending.add(waiting, remaining))
            return True

    def forget(self, waiting: Waiting, *, give_up: bool) -> bool:
        """Ends the wait for a call. It reports whether the call has no outcome."""
        with self._lock:
            part = self._pending.forget(waiting)
            if part and give_up:
                self._parts.put(part)
            return bool(part)

    def _messages(self) -> Iterator[bytes]:
        """Returns what is sent: all calls that wait are in one message."""
        while (part := self._parts.get()) is not None:
            parts, size = [part], len(part)
            while size < MAX_MESSAGE and not self._parts.empty():
                part = self._parts.get()
                if part is None:
                    return
                parts.append(part)
                size += len(part)
            yield b"".join(parts)

    def _receive(self, open_stream: Any) -> None:
        code: Code | None = None
        reason = "the broker has closed the stream"
        try:
            replies = open_stream(self._messages())
            for message in replies:
                with self._lock:
                    if not self._pending.take(message):
                        reason = "the broker shuts down"
                        replies.cancel()
                        break
        except grpc.RpcError as error:
            status: Any = error  # it is a grpc.Call
            code, reason = code_of(status.code().value[0]), status.details() or reason
        except ValueError:  # gRPC refuses calls of a channel that is closed
            code, reason = Code.UNAVAILABLE, "the connection was closed"
        with self._lock:
            self._pending.end(code, reason)
            self._parts.put(None)
