# SPDX-License-Identifier: Apache-2.0
"""Streams of any size against a broker, by both clients."""

from __future__ import annotations

import asyncio
import hashlib
import io
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from conftest import Broker, Either, MakeClient

import cryptobroker

SIZES = [0, 5, 64 << 10, (64 << 10) + 1, 256 << 10, (256 << 10) + 1, 3 << 20]


async def _read(stream: cryptobroker.CipherStream | cryptobroker.AsyncCipherStream) -> bytes:
    """The whole output of a stream of either kind."""
    if isinstance(stream, cryptobroker.AsyncCipherStream):
        return b"".join([piece async for piece in stream])
    return await asyncio.to_thread(b"".join, stream)


def _stream(client: Either, name: str, *arguments: Any, **options: Any) -> Any:
    return getattr(client.client, name)(*arguments, **options)


@pytest.mark.parametrize("size", SIZES)
async def test_an_input_of_any_size_is_hashed(client: Either, size: int) -> None:
    given = bytes(range(256)) * (size // 256) + bytes(size % 256)
    got = await client.hash_stream(io.BytesIO(given), profile="Default")
    assert (got.digest, got.algorithm) == (hashlib.sha256(given).digest(), "sha-256")


@pytest.mark.parametrize("size", SIZES)
async def test_a_stream_is_encrypted_and_decrypted(client: Either, size: int) -> None:
    given = bytes(range(256)) * (size // 256) + bytes(size % 256)
    sealing = _stream(client, "encrypt_stream", io.BytesIO(given), key_id="orders", context=b"c", profile="Data")
    sealed = await _read(sealing)
    assert sealing.result == cryptobroker.StreamResult("aes256-gcm-hkdf-64kb")
    assert len(sealed) > size
    opening = _stream(client, "decrypt_stream", [sealed[:7], sealed[7:]], context=b"c", profile="Data")
    assert await _read(opening) == given
    assert opening.result.algorithm == "aes256-gcm-hkdf-64kb"


async def test_a_stream_that_was_cut_or_has_another_context_is_an_error(client: Either) -> None:
    sealed = await _read(_stream(client, "encrypt_stream", [bytes(200_000)], key_id="orders", profile="Data"))
    for wrong, context in ((sealed[:-1], b""), (sealed[: 100 << 10], b""), (sealed, b"other")):
        opening = _stream(client, "decrypt_stream", [wrong], context=context, profile="Data")
        with pytest.raises(cryptobroker.InvalidArgumentError):
            await _read(opening)
        with pytest.raises(RuntimeError, match="known at its end"):
            _ = opening.result


class Torn(Exception):  # noqa: N818 (what the given raises)
    pass


@pytest.mark.parametrize("before", [5, 300_000, 1 << 20])
async def test_an_error_of_the_input_is_raised_as_it_is(client: Either, before: int) -> None:
    def torn() -> Iterator[bytes]:
        yield bytes(before)
        raise Torn

    with pytest.raises(Torn):
        await client.hash_stream(torn(), profile="Default")
    with pytest.raises(Torn):
        await _read(_stream(client, "encrypt_stream", torn(), key_id="orders", profile="Data"))


async def test_each_kind_of_input_is_read(shared: Broker) -> None:
    want = hashlib.sha256(bytes(700_000)).digest()

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(7):
            yield bytes(100_000)

    reader = asyncio.StreamReader()
    reader.feed_data(bytes(700_000))
    reader.feed_eof()
    async with cryptobroker.AsyncClient(socket=shared.socket, profile="Default") as client:
        for source in (pieces(), reader, [bytes(350_000)] * 2, io.BytesIO(bytes(700_000))):
            assert (await client.hash_stream(source)).digest == want
    with (
        cryptobroker.Client(socket=shared.socket, profile="Default") as threads,
        pytest.raises(TypeError, match="input: found str"),
    ):
        threads.hash_stream(["text"])  # type: ignore[list-item]


async def test_a_stream_that_is_closed_early_leaves_the_client_usable(client: Either) -> None:
    stream = _stream(client, "encrypt_stream", [bytes(1 << 20)], key_id="orders", profile="Data")
    if isinstance(stream, cryptobroker.AsyncCipherStream):
        async with stream:
            assert await anext(stream)
    else:
        with stream:
            assert next(stream)
    assert (await client.hash_data(b"", profile="Default")).digest == hashlib.sha256().digest()


async def test_an_unknown_profile_is_the_error_of_a_stream(client: Either) -> None:
    with pytest.raises(cryptobroker.InvalidArgumentError) as raised:
        await client.hash_stream(io.BytesIO(bytes(1 << 20)), profile="Nobody")
    assert (raised.value.operation, raised.value.profile) == ("HashData", "Nobody")
    with pytest.raises(cryptobroker.NotServedError, match='EncryptStream with profile "Default"'):
        await _read(_stream(client, "encrypt_stream", [b""], key_id="orders", profile="Default"))


class Interrupted(io.BytesIO):
    """A file that calls a function once it was read half."""

    def __init__(self, content: bytes, then: Callable[[], None], seekable: bool) -> None:
        super().__init__(content)
        self._half, self._then, self._seekable = len(content) // 2, then, seekable
        self._called = False

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() >= self._half and not self._called:
            self._called = True
            self._then()
        return super().read(size)

    def seekable(self) -> bool:
        return self._seekable


async def test_an_input_is_read_again_only_if_it_can_be(make_client: MakeClient, broker: Broker) -> None:
    client = make_client(broker.socket)
    await client.hash_data(b"", profile="Default")
    given = b"0123456789" * 400_000

    got = await client.hash_stream(Interrupted(given, broker.restart, seekable=True), profile="Default")
    assert got.digest == hashlib.sha256(given).digest()
    with pytest.raises(cryptobroker.UnavailableError, match="; the input cannot be read again"):
        await client.hash_stream(Interrupted(given, broker.restart, seekable=False), profile="Default")
    broken = _stream(
        client, "encrypt_stream", Interrupted(given, broker.restart, True), key_id="orders", profile="Data"
    )
    with pytest.raises(cryptobroker.UnavailableError, match="; a part of the data was processed already"):
        await _read(broken)


async def test_a_stream_waits_for_a_broker_that_is_not_there_yet(make_client: MakeClient, broker: Broker) -> None:
    broker.wait()
    broker.stop(signal.SIGKILL)
    client = make_client(broker.socket)
    given = bytes(500_000)
    calls = [
        asyncio.ensure_future(client.hash_stream(iter([given]), profile="Default")),
        asyncio.ensure_future(_read(_stream(client, "encrypt_stream", [b"abc"], key_id="orders", profile="Data"))),
    ]
    with pytest.raises(cryptobroker.UnavailableError):
        await client.health()
    broker.start()
    digest, sealed = await asyncio.gather(*calls)
    assert digest.digest == hashlib.sha256(given).digest()
    assert await _read(_stream(client, "decrypt_stream", [sealed], profile="Data")) == b"abc"


async def test_a_canceled_task_ends_its_stream(broker: Broker) -> None:
    async with cryptobroker.AsyncClient(socket=broker.socket, profile="Data") as client:
        await client.hash_data(b"", profile="Default")
        reads = asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            while True:
                yield bytes(64 << 10)
                reads.set()
                await asyncio.sleep(0)

        calls = [
            asyncio.ensure_future(client.hash_stream(endless(), profile="Default")),
            asyncio.ensure_future(_read(client.encrypt_stream(endless(), key_id="orders"))),
        ]
        await reads.wait()
        for call in calls:
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call


@pytest.mark.parametrize("before", [0, 1 << 20])
async def test_a_stream_that_another_task_reads_can_be_closed(shared: Broker, before: int) -> None:
    async with cryptobroker.AsyncClient(socket=shared.socket, profile="Data") as client:
        reads = asyncio.Event()

        async def stuck() -> AsyncIterator[bytes]:
            if before:
                yield bytes(before)
            reads.set()
            await asyncio.Event().wait()

        stream = client.encrypt_stream(stuck(), key_id="orders")
        task = asyncio.ensure_future(_read(stream))
        await reads.wait()
        await stream.aclose()
        with pytest.raises(cryptobroker.CanceledError):
            await task
        with pytest.raises(cryptobroker.CanceledError, match="the stream was closed before its end"):
            await anext(stream)


async def test_a_closed_client_ends_its_streams(make_client: MakeClient, shared: Broker) -> None:
    client = make_client(shared.socket, profile="Data")
    stream = _stream(client, "encrypt_stream", [bytes(1 << 20)] * 30, key_id="orders")
    if isinstance(stream, cryptobroker.AsyncCipherStream):
        assert await anext(stream)
    else:
        assert next(stream)
    await client.close()
    with pytest.raises(cryptobroker.ClientClosedError):
        await _read(stream)


async def test_a_stream_ends_with_its_time(make_client: MakeClient, broker: Broker) -> None:
    client = make_client(broker.socket)
    await client.hash_data(b"", profile="Default")
    broker.send(signal.SIGSTOP)
    with pytest.raises(cryptobroker.DeadlineExceededError):
        await client.hash_stream(iter([bytes(500_000)]), profile="Default", timeout=0.2)
    with pytest.raises(cryptobroker.DeadlineExceededError):
        await _read(_stream(client, "encrypt_stream", [b"abc"], key_id="orders", profile="Data", timeout=0.2))
    broker.send(signal.SIGCONT)
