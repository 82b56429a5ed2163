# SPDX-License-Identifier: Apache-2.0
"""Makes methods of a client from the functions that make calls, so that each operation is written once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def method_of(build: Callable[..., Any], method: F) -> F:
    """Gives a method the name, the documentation and the parameters of the function that makes its call, and
    the result of the call as its result.
    """
    functools.update_wrapper(method, build)
    del method.__wrapped__  # type: ignore[attr-defined]
    signature = inspect.signature(build)
    result = signature.return_annotation.removeprefix("Call[").removesuffix("]")
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[own, *signature.parameters.values()], return_annotation=result
    )
    return method
