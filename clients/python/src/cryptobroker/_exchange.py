# SPDX-License-Identifier: Apache-2.0
"""The stream of many calls: what is sent and received on it, however it is transported."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from cryptobroker._calls import Call, Calls
from cryptobroker._errors import Code, CryptoBrokerError, code_of
from cryptobroker._stubs.cryptobroker.stream.v1 import stream_pb2

METHOD = "/cryptobroker.stream.v1.StreamService/Exchange"
REPLIES = stream_pb2.ExchangeResponse

MAX_REQUEST = 16 << 10
"""The size in bytes of the largest request that is sent on the stream. Larger ones would delay others, and gain
nothing."""

MAX_CALLS = 1024
"""How many calls may wait for their reply on the stream at one time."""

MAX_MESSAGE = 256 << 10
"""After how many bytes the calls that wait are split into messages."""

_ASK_AGAIN = 60.0
"""After how many seconds a broker that does not have the stream is asked again. It may have been replaced."""

_LONGEST_TIMEOUT = (1 << 32) - 1
_LOST = frozenset({Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.CANCELED})

_NUMBERS = {field.name: field.number for field in stream_pb2.Call.DESCRIPTOR.fields}


def _varint(value: int) -> bytes:
    """Returns the encoding of a number, which is not negative."""
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


# The beginnings of fields: of ExchangeRequest, and of the calls in it.
_CALLS = _tag(stream_pb2.ExchangeRequest.CALLS_FIELD_NUMBER, 2)
_GIVEN_UP = _tag(stream_pb2.ExchangeRequest.GIVEN_UP_FIELD_NUMBER, 0)
_ID = _tag(_NUMBERS["id"], 0)
_TIMEOUT = _tag(_NUMBERS["timeout_millis"], 0)
_REQUESTS = {name: _tag(number, 2) for name, number in _NUMBERS.items()}


class Waiting:
    """A call that waits for its reply.

    Attributes:
        call: the call.
        wake: wakes whoever waits, after reply or error are there. If both are None, the call has to be made
            without the stream.
    """

    __slots__ = ("call", "error", "id", "reply", "wake")

    def __init__(self, call: Call[Any], wake: Callable[[], Any]) -> None:
        self.call = call
        self.wake = wake
        self.id = 0
        self.reply: Any = None
        self.error: CryptoBrokerError | None = None


class Offer:
    """Whether the broker of a client has the stream."""

    def __init__(self) -> None:
        self._missing_until = 0.0

    def __bool__(self) -> bool:
        return time.monotonic() >= self._missing_until

    def missing(self) -> None:
        """Says that the broker does not have the stream."""
        self._missing_until = time.monotonic() + _ASK_AGAIN


class Pending:
    """The calls on one stream. One thread at a time may call its methods.

    Args:
        calls: the calls of the client.
        offer: learns that the broker does not have the stream.
        free: is called when the broker does not serve a call any more.
    """

    def __init__(self, calls: Calls, offer: Offer, free: Callable[[], Any]) -> None:
        self._calls = calls
        self._offer = offer
        self._free = free
        # A call that nobody waits for any more is None.
        self._waiting: dict[int, Waiting | None] = {}
        self._last = 0
        self.ended = False

    def add(self, waiting: Waiting, remaining: float | None) -> bytes:
        """Adds a call and returns what to send for it. The stream has not ended."""
        self._last += 1
        waiting.id = self._last
        self._waiting[waiting.id] = waiting
        call, timeout = waiting.call, b""
        if remaining is not None:
            timeout = _TIMEOUT + _varint(min(max(1, int(remaining * 1000)), _LONGEST_TIMEOUT))
        head = b"".join(
            (_ID, _varint(waiting.id), timeout, _REQUESTS[call.operation.exchanged], _varint(len(call.encoded)))
        )
        return b"".join((_CALLS, _varint(len(head) + len(call.encoded)), head, call.encoded))

    def forget(self, waiting: Waiting) -> bytes:
        """Ends the wait for a call and returns what to send for it, nothing if the call has its outcome already.
        The broker still serves it, so that it counts until its reply is there.
        """
        if self._waiting.get(waiting.id) is not waiting:
            return b""
        self._waiting[waiting.id] = None
        return _GIVEN_UP + _varint(waiting.id)

    def take(self, message: Any) -> bool:
        """Gives the replies of a message to their calls. It reports whether more replies follow."""
        for reply in message.replies:
            if reply.id not in self._waiting:
                continue
            waiting = self._waiting.pop(reply.id)
            self._free()
            if waiting is not None:
                self._answer(waiting, reply)
        return not message.HasField("go_away")

    def _answer(self, waiting: Waiting, reply: Any) -> None:
        kind = reply.WhichOneof("result")
        if kind == waiting.call.operation.exchanged:
            waiting.reply = getattr(reply, kind)
        elif kind == "status":
            code = code_of(reply.status.code)
            if code is not Code.UNIMPLEMENTED:  # the broker may have the operation as a unary call only
                waiting.error = self._calls.refused(waiting.call, code, reply.status.message)
        waiting.wake()

    def end(self, code: Code | None, reason: str) -> None:
        """Gives the calls that are left their outcome. If one of them may have caused the end of the stream, each
        is made as a unary call, and gets its own answer. The code is None if the broker has closed the stream.
        """
        if self.ended:
            return
        self.ended = True
        if code is Code.UNIMPLEMENTED:
            self._offer.missing()
        for waiting in self._waiting.values():
            self._free()
            if waiting is None:
                continue
            if self._calls.stopped:
                waiting.error = waiting.call.closed()
            elif code is None or code in _LOST:
                waiting.error = self._calls.refused(waiting.call, Code.UNAVAILABLE, reason)
            waiting.wake()
        self._waiting.clear()
