# SPDX-License-Identifier: Apache-2.0
"""What all calls have in common, however they are transported: requests, tries and their errors."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import grpc

from cryptobroker._errors import TRANSIENT, Code, CryptoBrokerError, closed, code_of, error_of, said
from cryptobroker._results import Deprecation, TraceContext
from cryptobroker._settings import Settings, checked_timeout

T = TypeVar("T")

MAX_REQUEST = 4 << 20
"""The size in bytes of the largest request. Brokers refuse larger ones, some of them with the code of a
broker that has too much to do, and the client would try again in vain."""

_FIRST_WAIT, _LONGEST_WAIT = 0.010, 1.0


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the broker.

    Attributes:
        name: its name in errors.
        path: its method in gRPC.
        reply: the class of the message with which the broker replies.
        profiled: whether it has a profile. Health has none, and is never made again.
        exchanged: the name of its field on the stream of many calls, empty if it is a unary call only.
    """

    name: str
    path: str
    reply: Any
    profiled: bool = True
    exchanged: str = ""


@dataclass(slots=True)
class Call(Generic[T]):
    """One call, made from the arguments of a method.

    Attributes:
        request: the message.
        read: returns the result, from the reply and the warning in it. It raises ValueError with what
            the reply lacks.
        profile: the profile of the call.
        timeout: the time for the call with all its tries in seconds, or None.
        encoded: the encoded request, once it was prepared.
    """

    operation: Operation
    request: Any = field(repr=False)
    read: Callable[[Any, Deprecation | None], T]
    profile: str = ""
    timeout: float | None = None
    encoded: bytes = field(default=b"", repr=False)

    def error(self, code: Code, what: str) -> CryptoBrokerError:
        """Returns an error of the call. The argument what is the end of its sentence."""
        name = self.operation.name
        return error_of(code, name, self.profile, said(name, self.profile, what))

    def closed(self, last: CryptoBrokerError | None = None) -> CryptoBrokerError:
        """Returns the error of the call if the client was closed."""
        return closed(self.operation.name, self.profile, last)


class Calls:
    """The calls of one client."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stopped = False  # whether the client has stopped waiting for calls
        self._warned: set[Deprecation] = set()

    def prepare(self, call: Call[Any]) -> None:
        """Completes and encodes a request."""
        call.timeout = checked_timeout(call.timeout)
        if not call.operation.profiled:
            call.encoded = call.request.SerializeToString()
            return
        call.profile = call.profile or self.settings.profile
        call.request.profile = call.profile
        context = self.settings.trace_context
        if context is not None and (trace := context()) is not None:
            _add_trace(call.request, trace)
        call.encoded = call.request.SerializeToString()
        if len(call.encoded) > MAX_REQUEST:
            what = f"the request has {len(call.encoded)} bytes, expected at most {MAX_REQUEST}"
            raise call.error(Code.INVALID_ARGUMENT, what)

    def finish(self, call: Call[T], reply: Any) -> T:
        """Returns the result of a call."""
        warning = self.warning(reply) if call.operation.profiled else None
        try:
            return call.read(reply, warning)
        except ValueError as lack:
            raise call.error(Code.INTERNAL, f"the reply cannot be read: it has no {lack}") from None

    def warning(self, reply: Any) -> Deprecation | None:
        """Returns the warning of a deprecated profile in a reply, after the handler of warnings has it."""
        if not reply.metadata.HasField("deprecation"):
            return None
        found = reply.metadata.deprecation
        warning = Deprecation(
            found.profile, found.replaced_by, found.deprecated_since, found.remove_after, found.reason
        )
        self.tell(warning)
        return warning

    def tell(self, warning: Deprecation) -> None:
        """Calls the handler of warnings, once for each different warning."""
        if self.settings.on_deprecation and warning not in self._warned:
            self._warned.add(warning)
            self.settings.on_deprecation(warning)

    def failed(self, call: Call[Any], error: grpc.RpcError, deadline: float | None) -> CryptoBrokerError:
        """Returns the error of a try that gRPC has ended. The deadline belongs to the try, or is None."""
        status: Any = error  # the errors of calls are grpc.Call and grpc.aio.AioRpcError
        code, details = code_of(status.code().value[0]), status.details() or ""
        if self.stopped and code in (Code.CANCELED, Code.UNAVAILABLE):
            return call.closed()
        if code is Code.DEADLINE_EXCEEDED and deadline is not None:
            return late(call)
        return self.refused(call, code, details)

    def refused(self, call: Call[Any], code: Code, reason: str) -> CryptoBrokerError:
        """Returns the error of a status from gRPC or from the broker. Sentences of a broker begin with the
        operation. Others get the operation and the socket.
        """
        name = call.operation.name
        if not reason.startswith(name):
            reason = said(name, call.profile, f"{reason} (socket {self.settings.socket})")
        return error_of(code, name, call.profile, reason)


def _add_trace(message: Any, trace: TraceContext) -> None:
    """Puts the trace of the caller into the metadata of a message."""
    to = message.metadata.trace_context
    to.trace_id, to.span_id, to.trace_flags = trace.trace_id, trace.span_id, trace.flags
    to.trace_state, to.correlation_id = trace.state, trace.correlation_id


def late(call: Call[Any], last: CryptoBrokerError | None = None) -> CryptoBrokerError:
    """Returns the error of a call whose time has passed."""
    what = "there was no reply within the time for the call" + (f"; the last try: {last.reason}" if last else "")
    return call.error(Code.DEADLINE_EXCEEDED, what)


class Tries:
    """The tries of one call: how long each may take, and whether there is another one."""

    __slots__ = ("_began", "_budget", "_call", "_count", "deadline", "last")

    def __init__(self, settings: Settings, call: Call[Any]) -> None:
        self._call = call
        self._began = time.monotonic()
        self._budget = settings.retry_budget
        timeout = settings.timeout
        if timeout is None or (call.timeout is not None and call.timeout < timeout):
            timeout = call.timeout
        self.deadline = None if timeout is None else self._began + timeout
        self._count = 0
        self.last: CryptoBrokerError | None = None

    def remaining(self) -> float | None:
        """Returns how many seconds the next try may take, None for no limit. It raises the error of the
        call if no time is left.
        """
        if self.deadline is None:
            return None
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise late(self._call, self.last)
        return left

    def wait_after(self, error: CryptoBrokerError, final: str = "") -> float:
        """Returns how many seconds to wait before the next try.

        It raises the error of the call if the error is not transient, if final says why the call cannot be
        made again, or if the budget has no time for another try.
        """
        if error.code is Code.DEADLINE_EXCEEDED and self.last and self.deadline is not None:
            raise late(self._call, self.last) from None
        if error.code not in TRANSIENT or not self._call.operation.profiled:
            raise error
        if final:
            raise error_of(error.code, error.operation, error.profile, f"{error.reason}; {final}") from None
        self._count += 1
        wait = jittered(self._count)
        took = time.monotonic() - self._began
        if took + wait > self._budget:
            times = "1 try" if self._count == 1 else f"{self._count} tries"
            reason = f"{error.reason} (given up after {times} in {took:.3f} s)"
            raise error_of(error.code, error.operation, error.profile, reason, retry_budget_spent=True) from None
        self.last = error
        if self.deadline is not None:
            wait = min(wait, max(0.0, self.deadline - time.monotonic()))
        return wait


def jittered(tries: int) -> float:
    """Returns how many seconds to wait after so many tries. It is a random time, so that many callers do
    not try again at the same moment. The longest time doubles with each try, up to one second.
    """
    most = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(tries - 1, 10))
    return random.uniform(0, most)  # noqa: S311 (it is no secret)
