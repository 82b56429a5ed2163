# SPDX-License-Identifier: Apache-2.0
"""Makes loads with the Python clients and with grpcio. README.md two directories above describes loads."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

import cryptobroker
from cryptobroker._stubs.cryptobroker.v1 import service_pb2

PROFILE = "Default"
INPUT_SIZE = 32

HASH_DATA = "/cryptobroker.v1.CryptoService/HashData"
HEALTH = "/grpc.health.v1.Health/Check"


class Measured:
    """What was measured, by several callers."""

    def __init__(self, millis: int) -> None:
        self._times: list[float] = []
        self._errors: list[Exception] = []
        self._began = time.perf_counter()
        self.end = self._began + millis / 1000

    def add(self, times: list[float], errors: list[Exception]) -> None:
        """Adds the times in seconds and the errors of one caller."""
        self._times += times
        self._errors += errors

    def line(self) -> str:
        """The line for the load, which has ended."""
        took = time.perf_counter() - self._began
        times = sorted(self._times)
        done = len(times) - len(self._errors)
        found: dict[str, Any] = {"done": done, "failed": len(self._errors), "perSecond": done / took}
        for percent in (50, 99):
            found[f"p{percent}"] = times[len(times) * percent // 100] * 1e6 if times else 0
        if self._errors:
            found["error"] = str(self._errors[0])
        return json.dumps(found)


def calls_of(channel: Any, unary: Any, exchange: Any) -> dict[str, Callable[[], Any]]:
    """What makes one call each, by the names of way and operation."""
    hash_data = channel.unary_unary(
        HASH_DATA,
        request_serializer=service_pb2.HashDataRequest.SerializeToString,
        response_deserializer=service_pb2.HashDataResponse.FromString,
    )
    health = channel.unary_unary(HEALTH)
    raw = service_pb2.HASH_OUTPUT_FORMAT_RAW
    return {
        "bare HashData": lambda: hash_data(
            service_pb2.HashDataRequest(profile=PROFILE, input=bytes(INPUT_SIZE), output_format=raw)
        ),
        "bare Health": lambda: health(b""),
        "unary HashData": lambda: unary.hash_data(bytes(INPUT_SIZE), profile=PROFILE),
        "exchange HashData": lambda: exchange.hash_data(bytes(INPUT_SIZE), profile=PROFILE),
        "unary Health": lambda: unary.health(),
    }


def by_threads(call: Callable[[], Any], callers: int, millis: int) -> str:
    """Makes a load with a thread for each caller, which begins its next call when it has its reply."""
    found = Measured(millis)

    def caller() -> None:
        times: list[float] = []
        errors: list[Exception] = []
        now = time.perf_counter()
        while not times or now < found.end:
            try:
                call()
            except (cryptobroker.CryptoBrokerError, grpc.RpcError) as error:
                errors.append(error)
            after = time.perf_counter()
            times.append(after - now)
            now = after
        found.add(times, errors)

    threads = [threading.Thread(target=caller) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found.line()


async def by_tasks(call: Callable[[], Awaitable[Any]], callers: int, millis: int) -> str:
    """Makes a load with a task for each caller."""
    found = Measured(millis)

    async def caller() -> None:
        times: list[float] = []
        errors: list[Exception] = []
        now = time.perf_counter()
        while not times or now < found.end:
            try:
                await call()
            except (cryptobroker.CryptoBrokerError, grpc.RpcError) as error:
                errors.append(error)
            after = time.perf_counter()
            times.append(after - now)
            now = after
        found.add(times, errors)

    await asyncio.gather(*(caller() for _ in range(callers)))
    return found.line()


async def main() -> None:
    """Makes the load of each line."""
    target = "unix:" + os.environ["CRYPTO_BROKER_SOCKET"]
    asynchronous = "--asyncio" in sys.argv
    client: Any = cryptobroker.AsyncClient if asynchronous else cryptobroker.Client
    channel: Any = (grpc.aio if asynchronous else grpc).insecure_channel(target)
    unary, exchange = client(exchange=False), client()
    calls = calls_of(channel, unary, exchange)
    for line in sys.stdin:
        load = json.loads(line)
        call = calls[f"{load['way']} {load['operation']}"]
        if asynchronous:
            print(await by_tasks(call, load["callers"], load["millis"]), flush=True)
        else:
            print(by_threads(call, load["callers"], load["millis"]), flush=True)
    for closing in (unary.close(), exchange.close(), channel.close()):
        if inspect.isawaitable(closing):
            await closing


asyncio.run(main())
