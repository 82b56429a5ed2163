# SPDX-License-Identifier: Apache-2.0
"""Errors of calls."""

from __future__ import annotations

import enum


class Code(enum.IntEnum):
    """The kind of error of a call. Names and numbers are as in gRPC."""

    CANCELED = 1
    """The client was closed, or the broker canceled the call."""
    UNKNOWN = 2
    """No other code fits."""
    INVALID_ARGUMENT = 3
    """The request is not valid, or the broker does not have the profile."""
    DEADLINE_EXCEEDED = 4
    """The call did not end within its time."""
    NOT_FOUND = 5
    """The broker has no key with the id."""
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    """The profile does not allow the caller, or the key."""
    RESOURCE_EXHAUSTED = 8
    """The broker has too much to do. The client tries again."""
    FAILED_PRECONDITION = 9
    """The profile does not offer the operation, or a key cannot be used."""
    ABORTED = 10
    """The call conflicted with another call. The client tries again."""
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    """The version of the broker does not have the operation."""
    INTERNAL = 13
    """A defect of the broker or of this package."""
    UNAVAILABLE = 14
    """The broker, or a key manager that it uses, cannot be reached. The client tries again."""
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


TRANSIENT = frozenset({Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED, Code.ABORTED})
"""The codes after which a call may be made again."""


class CryptoBrokerError(Exception):
    """A call failed. Each code that programs distinguish has a class of its own.

    Attributes:
        code: the kind of error.
        operation: the name of the operation, such as "HashData".
        profile: the name of the profile of the call, empty if it has none.
        reason: a sentence that says what was found and what was expected. It quotes no secrets.
        retry_budget_spent: whether the code is the code of the last of several tries, and no time
            was left for another one.
    """

    def __init__(self, code: Code, operation: str, profile: str, reason: str, retry_budget_spent: bool = False) -> None:
        super().__init__(code, operation, profile, reason, retry_budget_spent)
        self.code = code
        self.operation = operation
        self.profile = profile
        self.reason = reason
        self.retry_budget_spent = retry_budget_spent

    def __str__(self) -> str:
        return f"crypto broker: {self.code.name}: {self.reason}"


class InvalidArgumentError(CryptoBrokerError):
    """INVALID_ARGUMENT: the request is not valid, or the broker does not have the profile."""


class NotFoundError(CryptoBrokerError):
    """NOT_FOUND: the broker has no key with the id."""


class PermissionDeniedError(CryptoBrokerError):
    """PERMISSION_DENIED: the profile does not allow the caller, or the key."""


class NotServedError(CryptoBrokerError):
    """FAILED_PRECONDITION: the profile does not offer the operation, or a key cannot be used."""


class UnimplementedError(CryptoBrokerError):
    """UNIMPLEMENTED: the version of the broker does not have the operation."""


class UnavailableError(CryptoBrokerError):
    """UNAVAILABLE: the broker, or a key manager that it uses, cannot be reached."""


class ResourceExhaustedError(CryptoBrokerError):
    """RESOURCE_EXHAUSTED: the broker has too much to do."""


class AbortedError(CryptoBrokerError):
    """ABORTED: the call conflicted with another call."""


class DeadlineExceededError(CryptoBrokerError, TimeoutError):
    """DEADLINE_EXCEEDED: the call did not end within its time. It is a TimeoutError as well."""


class InternalError(CryptoBrokerError):
    """INTERNAL: a defect of the broker or of this package."""


class CanceledError(CryptoBrokerError):
    """CANCELED: the call was canceled."""


class ClientClosedError(CanceledError):
    """CANCELED: the client was closed."""


_CLASSES: dict[Code, type[CryptoBrokerError]] = {
    Code.CANCELED: CanceledError,
    Code.INVALID_ARGUMENT: InvalidArgumentError,
    Code.DEADLINE_EXCEEDED: DeadlineExceededError,
    Code.NOT_FOUND: NotFoundError,
    Code.PERMISSION_DENIED: PermissionDeniedError,
    Code.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    Code.FAILED_PRECONDITION: NotServedError,
    Code.ABORTED: AbortedError,
    Code.UNIMPLEMENTED: UnimplementedError,
    Code.INTERNAL: InternalError,
    Code.UNAVAILABLE: UnavailableError,
}


def error_of(
    code: Code, operation: str, profile: str, reason: str, retry_budget_spent: bool = False
) -> CryptoBrokerError:
    """Returns the error of the class of a code. The reason is a whole sentence."""
    return _CLASSES.get(code, CryptoBrokerError)(code, operation, profile, reason, retry_budget_spent)


def code_of(number: int) -> Code:
    """Returns the code with a number, or UNKNOWN if gRPC has no such code."""
    try:
        return Code(number)
    except ValueError:
        return Code.UNKNOWN


def said(operation: str, profile: str, what: str) -> str:
    """Returns a sentence with operation and profile before it, as brokers write it."""
    return f'{operation} with profile "{profile}": {what}' if profile else f"{operation}: {what}"


def closed(operation: str, profile: str, last: CryptoBrokerError | None = None) -> ClientClosedError:
    """Returns the error of a call of a client that was closed."""
    what = "the client was closed" + (f"; the last try: {last.reason}" if last else "")
    return ClientClosedError(Code.CANCELED, operation, profile, said(operation, profile, what))
