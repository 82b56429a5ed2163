# SPDX-License-Identifier: Apache-2.0
"""The options of a client."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass

from cryptobroker._results import Deprecation, TraceContext

DEFAULT_SOCKET = "/tmp/open-crypto-broker/crypto-broker-server.sock"  # noqa: S108 (the path that brokers listen at)
"""The path of the socket at which brokers listen by default."""

SOCKET_VARIABLE = "CRYPTO_BROKER_SOCKET"
"""The name of the environment variable with the path of the socket."""

DEFAULT_RETRY_BUDGET = 60.0
"""How many seconds calls are tried again by default. It is enough for the start of a broker."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The values of the options of a client."""

    socket: str
    profile: str
    timeout: float | None
    retry_budget: float
    exchange: bool
    trace_context: Callable[[], TraceContext | None] | None
    on_deprecation: Callable[[Deprecation], None] | None

    @property
    def target(self) -> str:
        """The address of the socket for gRPC."""
        return "unix:" + urllib.parse.quote(os.path.abspath(self.socket))


def settings_of(
    socket: str | os.PathLike[str] | None,
    profile: str,
    timeout: float | None,
    retry_budget: float,
    exchange: bool,
    trace_context: Callable[[], TraceContext | None] | None,
    on_deprecation: Callable[[Deprecation], None] | None,
) -> Settings:
    """Returns the values of options. It raises ValueError for options that are not valid."""
    path = os.environ.get(SOCKET_VARIABLE) or DEFAULT_SOCKET if socket is None else os.fspath(socket)
    if not path:
        raise ValueError("socket: found an empty path, expected the path of the broker's socket")
    if not retry_budget >= 0:
        raise ValueError(f"retry_budget: found {retry_budget}, expected 0 or more seconds")
    return Settings(path, profile, checked_timeout(timeout), retry_budget, exchange, trace_context, on_deprecation)


def checked_timeout(timeout: float | None) -> float | None:
    """Returns the timeout. It raises ValueError if it is not a positive number of seconds."""
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout: found {timeout}, expected a positive number of seconds, or None")
    return timeout


_MEBIBYTE = 1 << 20

CHANNEL_OPTIONS: list[tuple[str, str | int]] = [
    ("grpc.default_authority", "localhost"),
    ("grpc.primary_user_agent", "crypto-broker-python"),
    # The client itself decides what is made again.
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.enable_http_proxy", 0),
    # Each client has a connection of its own, which ends with it.
    ("grpc.use_local_subchannel_pool", 1),
    # How long to wait before the next connection, in milliseconds. 100 is the least that gRPC accepts.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # How long a new connection may take until the broker has answered.
    ("grpc.min_reconnect_backoff_ms", 5000),
    # Calls end if a broker does not run any more. A broker that runs may read nothing of a connection
    # for a minute, while other clients use all memory of its caller.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 70_000),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", _MEBIBYTE),
    # A broker sends messages of up to 4 MiB.
    ("grpc.max_receive_message_length", 8 * _MEBIBYTE),
    ("grpc.max_send_message_length", 8 * _MEBIBYTE),
]
