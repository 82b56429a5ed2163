# SPDX-License-Identifier: Apache-2.0
"""Restarts of brokers, tries, deadlines, cancellation and the end of clients."""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from conftest import WAIT_LIMIT, Broker, Either, MakeClient

import cryptobroker
from cryptobroker import Code, KeyId
from cryptobroker._calls import Call, Operation, Tries, jittered
from cryptobroker._exchange import METHOD
from cryptobroker._operations import HASH_DATA
from cryptobroker._settings import settings_of
from cryptobroker._stubs.cryptobroker.stream.v1 import stream_pb2
from cryptobroker._stubs.cryptobroker.v1 import data_keys_pb2


async def _hash(client: Either, input: bytes = b"abc") -> None:
    got = await client.hash_data(input, profile="Default")
    assert got.digest == hashlib.sha256(input).digest()


@pytest.mark.parametrize(("how", "exchange"), [(signal.SIGKILL, True), (signal.SIGTERM, True), (signal.SIGKILL, False)])
async def test_no_call_is_lost_while_the_broker_is_restarted(
    make_client: MakeClient, broker: Broker, how: signal.Signals, exchange: bool
) -> None:
    client = make_client(broker.socket, exchange=exchange)
    key = KeyId("orders")
    sealed = await client.encrypt_data(b"boxes", key=key, profile="Orders")

    async def decrypt(_: int) -> None:
        got = await client.decrypt_data(
            sealed.ciphertext, key=key, nonce=sealed.nonce, tag=sealed.tag, profile="Orders"
        )
        assert got.plaintext == b"boxes"

    operations: list[Callable[[int], Awaitable[None]]] = [
        lambda n: _hash(client, b"input %d" % n),
        decrypt,
        lambda _: client.encrypt_data(b"x", key=key, profile="Orders"),
        lambda _: _hash(client, bytes(200_000)),  # more than a frame of HTTP/2
    ]
    done, calls = False, 0

    async def caller(number: int) -> None:
        nonlocal calls
        turn = 0
        while not done:
            await operations[number % len(operations)](turn)
            turn, calls = turn + 1, calls + 1

    async def more(number: int) -> None:
        """Returns once the callers have made so many calls more, or one of them has failed."""
        seen = calls
        await _until(lambda: calls >= seen + number or any(caller.done() for caller in callers))

    callers = [asyncio.ensure_future(caller(number)) for number in range(8)]
    for _ in range(3):
        await more(50)
        await asyncio.to_thread(broker.stop, how)
        broker.start()
    await more(50)  # after the last restart it goes on, too
    done = True
    await asyncio.gather(*callers)


async def test_a_call_waits_for_a_broker_that_is_not_there_yet(
    make_client: MakeClient, binary: Path, folder: Path
) -> None:
    broker = Broker(binary, folder)
    client = make_client(broker.socket)
    call = asyncio.ensure_future(_hash(client))
    with pytest.raises(cryptobroker.UnavailableError) as raised:
        await client.health()  # it is tried once
    assert not raised.value.retry_budget_spent
    assert broker.socket in raised.value.reason
    broker.start()
    await call
    assert broker.stop(signal.SIGTERM) == 0


async def test_a_spent_budget_is_an_error_with_the_last_reason(make_client: MakeClient, folder: Path) -> None:
    socket = str(folder / "none")
    client = make_client(socket, retry_budget=0.2)
    with pytest.raises(cryptobroker.UnavailableError) as raised:
        await client.hash_data(b"", profile="P")
    assert raised.value.retry_budget_spent
    for part in ('HashData with profile "P": ', socket, "(given up after "):
        assert part in raised.value.reason


async def test_without_a_budget_there_is_one_try(make_client: MakeClient, folder: Path) -> None:
    client = make_client(folder / "none", retry_budget=0)
    with pytest.raises(cryptobroker.UnavailableError, match="given up after 1 try"):
        await client.hash_data(b"", profile="P")


@pytest.mark.parametrize(("bound", "exchange"), [("client", True), ("call", True), ("call", False)])
async def test_a_call_ends_with_its_time_if_the_broker_does_not_answer(
    make_client: MakeClient, broker: Broker, bound: str, exchange: bool
) -> None:
    broker.wait()
    options = {"timeout": 0.2} if bound == "client" else {}
    client = make_client(broker.socket, profile="Default", exchange=exchange, **options)
    broker.send(signal.SIGSTOP)
    calls = [client.hash_data(b"", **({} if options else {"timeout": 0.2})) for _ in range(3)]
    for result in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(result, cryptobroker.DeadlineExceededError)
        assert isinstance(result, TimeoutError)
        assert 'HashData with profile "Default": there was no reply within the time for the call' in result.reason
    broker.send(signal.SIGCONT)
    other = make_client(broker.socket)
    await _hash(other)


class _Ends(grpc.GenericRpcHandler):
    """A broker that ends each stream of many calls with an error, the first one only when it is told to."""

    def __init__(self, socket: str) -> None:
        self.began = threading.Event()  # set once the first stream has its call
        self.end = threading.Event()  # set to end it
        self.streamed: list[float] = []  # the times that are left for calls, in seconds
        self.unary: list[float] = []
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), [self])
        self.server.add_insecure_port(f"unix:{socket}")
        self.server.start()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        if details.method == METHOD:
            return grpc.stream_stream_rpc_method_handler(self._exchange, stream_pb2.ExchangeRequest.FromString)
        assert details.method == HASH_DATA.path
        return grpc.unary_unary_rpc_method_handler(self._hash, None, HASH_DATA.reply.SerializeToString)

    def _exchange(self, messages: Any, context: grpc.ServicerContext) -> Any:
        self.streamed += [call.timeout_millis / 1000 for call in next(messages).calls]
        self.began.set()
        assert self.end.wait(WAIT_LIMIT)
        context.abort(grpc.StatusCode.INTERNAL, "it ends")

    def _hash(self, _: bytes, context: grpc.ServicerContext) -> Any:
        self.unary.append(context.time_remaining())
        return HASH_DATA.reply(hash_value_raw=b"digest")


class _Replies(grpc.GenericRpcHandler):
    """A broker with the same reply to each call."""

    def __init__(self, socket: str, reply: bytes) -> None:
        self.reply = reply
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), [self])
        self.server.add_insecure_port(f"unix:{socket}")
        self.server.start()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        return grpc.unary_unary_rpc_method_handler(lambda _, __: self.reply)


async def test_a_wrapped_key_without_a_data_key_and_an_error_is_an_error_of_the_call(
    make_client: MakeClient, folder: Path
) -> None:
    results = [data_keys_pb2.UnwrapResult(data_key=b"data"), data_keys_pb2.UnwrapResult()]
    reply = data_keys_pb2.UnwrapBatchResponse(results=results)
    broker = _Replies(str(folder / "s"), reply.SerializeToString())
    client = make_client(folder / "s", profile="Data", exchange=False)
    with pytest.raises(cryptobroker.CryptoBrokerError, match="data key or error"):
        await client.unwrap_batch([cryptobroker.WrappedKey(b"wrapped")] * 2)
    broker.server.stop(None).wait()


async def test_the_time_that_a_call_has_waited_is_not_given_to_it_again(
    make_client: MakeClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cryptobroker._thread_exchange.MAX_CALLS", 1)
    monkeypatch.setattr("cryptobroker._async_exchange.MAX_CALLS", 1)
    broker = _Ends(str(folder / "s"))
    client = make_client(folder / "s", profile="Default")
    first = asyncio.ensure_future(client.hash_data(b""))
    await asyncio.to_thread(broker.began.wait, WAIT_LIMIT)
    second = asyncio.ensure_future(client.hash_data(b""))  # it waits for its place on the stream
    await _until(lambda: client.active == 2)
    await asyncio.sleep(1)
    broker.end.set()
    for got in await asyncio.gather(first, second):
        assert got.digest == b"digest"
    assert len(broker.streamed) == len(broker.unary) == 2
    assert max(broker.streamed[1], *broker.unary) < WAIT_LIMIT - 0.5
    broker.server.stop(None).wait()


async def test_the_time_of_a_call_ends_its_tries(make_client: MakeClient, folder: Path) -> None:
    client = make_client(folder / "none")
    with pytest.raises(cryptobroker.DeadlineExceededError, match="; the last try: HashData: "):
        await client.hash_data(b"", timeout=2)


@pytest.mark.parametrize("exchange", [True, False])
async def test_a_canceled_task_cancels_its_call_and_no_other(broker: Broker, exchange: bool) -> None:
    async with cryptobroker.AsyncClient(socket=broker.socket, timeout=WAIT_LIMIT, exchange=exchange) as client:
        await client.hash_data(b"", profile="Default")
        broker.send(signal.SIGSTOP)
        calls = [asyncio.ensure_future(client.hash_data(b"%d" % n, profile="Default")) for n in range(4)]
        await asyncio.sleep(0)
        calls[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls[1]
        broker.send(signal.SIGCONT)
        for n in (0, 2, 3):
            assert (await calls[n]).digest == hashlib.sha256(b"%d" % n).digest()


async def test_close_waits_for_calls_that_have_begun(make_client: MakeClient, broker: Broker) -> None:
    client = make_client(broker.socket)
    await _hash(client)
    broker.send(signal.SIGSTOP)
    calls = [asyncio.ensure_future(_hash(client)) for _ in range(3)]
    await _until(lambda: client.active == 3)
    closing = asyncio.ensure_future(client.close())
    await _until(lambda: client.client._closed)
    with pytest.raises(cryptobroker.ClientClosedError, match="the client was closed"):
        await client.hash_data(b"")
    assert not closing.done()
    broker.send(signal.SIGCONT)
    await closing
    await asyncio.gather(*calls)


@pytest.mark.parametrize("exchange", [True, False])
async def test_calls_that_do_not_end_before_the_time_of_close_fail(
    make_client: MakeClient, broker: Broker, exchange: bool
) -> None:
    client = make_client(broker.socket, exchange=exchange)
    await _hash(client)
    broker.send(signal.SIGSTOP)
    calls = [asyncio.ensure_future(client.hash_data(b"", profile="Default")) for _ in range(3)]
    await _until(lambda: client.active == 3)
    await client.close(timeout=0.05)
    for result in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(result, cryptobroker.ClientClosedError)
    broker.send(signal.SIGCONT)
    await client.close()


async def test_a_call_that_waits_for_its_next_try_ends_when_the_client_is_closed(
    make_client: MakeClient, folder: Path
) -> None:
    client = make_client(folder / "none")
    call = asyncio.ensure_future(client.hash_data(b""))
    await _until(lambda: client.active == 1)
    await client.close(timeout=0.05)
    with pytest.raises(cryptobroker.ClientClosedError):
        await call


async def _until(condition: Callable[[], bool]) -> None:
    async def poll() -> None:
        while not condition():  # noqa: ASYNC110 (the client has no event for it)
            await asyncio.sleep(0.001)

    await asyncio.wait_for(poll(), WAIT_LIMIT)


def test_a_program_that_does_not_close_its_client_ends(broker: Broker) -> None:
    broker.wait()
    program = "import sys, cryptobroker; cryptobroker.Client(socket=sys.argv[1]).hash_data(b'', profile='Default')"
    ran = subprocess.run([sys.executable, "-c", program, broker.socket], capture_output=True, timeout=WAIT_LIMIT)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


async def test_a_client_belongs_to_one_event_loop(broker: Broker) -> None:
    client = cryptobroker.AsyncClient(socket=broker.socket)
    await client.hash_data(b"", profile="Default")

    def elsewhere() -> Any:
        return asyncio.run(client.health())

    with pytest.raises(RuntimeError, match="found another event loop"):
        await asyncio.to_thread(elsewhere)
    await client.close()


async def test_the_broker_receives_the_trace_context(make_client: MakeClient, shared: Broker) -> None:
    wrong = cryptobroker.TraceContext("a" * 32, "b" * 16, "01", "", "no\ttab")
    client = make_client(shared.socket, trace_context=lambda: wrong, profile="Default")
    with pytest.raises(cryptobroker.InvalidArgumentError, match="correlation"):
        await client.hash_data(b"")
    right = cryptobroker.TraceContext("a" * 32, "b" * 16, "01", "vendor=1", "order 4711")
    traces = [right, None]
    client = make_client(shared.socket, trace_context=traces.pop, profile="Default")
    while traces:
        await client.hash_data(b"")


def _tries(budget: float) -> tuple[Tries, Call[None]]:
    call: Call[None] = Call(Operation("HashData", "/p", None), None, lambda *_: None, "P")
    return Tries(settings_of("/s", "", None, budget, True, None, None), call), call


@pytest.mark.parametrize("code", list(Code))
def test_only_calls_with_transient_codes_are_made_again(code: Code) -> None:
    tries, call = _tries(60)
    error = call.error(code, "no")
    if code in (Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED, Code.ABORTED):
        assert 0 <= tries.wait_after(error) <= 0.01
        return
    with pytest.raises(cryptobroker.CryptoBrokerError) as raised:
        tries.wait_after(error)
    assert raised.value is error


def test_waits_are_random_and_grow_up_to_a_second() -> None:
    for tries, longest in ((1, 0.01), (2, 0.02), (5, 0.16), (8, 1.0), (1000, 1.0)):
        waits = [jittered(tries) for _ in range(1000)]
        assert max(waits) <= longest
        assert max(waits) > longest / 2, "half of them are longer"
        assert min(waits) < longest / 2
