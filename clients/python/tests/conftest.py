# SPDX-License-Identifier: Apache-2.0
"""Brokers and clients of the tests. The brokers are real: they are built from this checkout."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

import cryptobroker

WAIT_LIMIT = 60.0
"""Seconds, far above what anything here takes; only a failure reaches it."""

SESSIONS_KEY = ed25519.Ed25519PrivateKey.from_private_bytes(b"s" * 32)
"""It signs for the native sessions."""

PAIR = ec.generate_private_key(ec.SECP256R1())
"""It wraps data keys."""

PROFILES = """
- Name: Default
  API:
    HashData: {HashAlg: sha-256}
- Name: Old
  API:
    HashData: {HashAlg: sha-512}
  Deprecation: {ReplacedBy: Default, DeprecatedSince: 2026-01-01, RemoveAfter: 2027-01-01, Reason: It is long.}
- Name: Orders
  API:
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: orders}, {Id: nobody}]}
- Name: Data
  API:
    DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: orders}]}
- Name: Shop
  API:
    Session: {Protocols: [session-v1, session-v2], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}
- Name: Native
  API:
    Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: sessions}]}
- Name: Own
  API:
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}
- Name: Receipts
  API:
    SignData: {SignAlg: ed25519}
- Name: Contracts
  API:
    SignData: {SignAlg: ecdsa, HashAlg: sha-256}
- Name: Keys
  API:
    SignData: {SignAlg: ed25519, KeyIds: [{Id: sessions}]}
    DataKeys: {WrapAlgs: [hpke-p-256], KeySize: 256, KeyIds: [{Id: pair}]}
- Name: Servers
  API:
    SignCertificate:
      SignAlg: ecdsa
      HashAlg: sha-384
      KeyConstraints:
        Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}
        Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 8760h}
      KeyUsage: [digitalSignature]
      ExtendedKeyUsage: [serverAuth]
"""


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The broker, built from the same checkout."""
    path = tmp_path_factory.mktemp("bin") / "broker"
    root = Path(__file__).parents[3]
    build = ["go", "build", "-o", str(path), "./cmd/broker"]
    subprocess.run(build, cwd=root, env=os.environ | {"CGO_ENABLED": "0"}, check=True)
    return path


def pkcs8(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    """The private key in PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


class Broker:
    """A broker that can be stopped and started again."""

    def __init__(self, binary: Path, folder: Path, *flags: str) -> None:
        for name in ("profiles", "keys"):
            (folder / name).mkdir(mode=0o700)
        (folder / "profiles" / "Profiles.yaml").write_text(PROFILES)
        for name, content in (
            ("orders.bin", b"k" * 32),
            ("sessions.key", pkcs8(SESSIONS_KEY)),
            ("pair.key", pkcs8(PAIR)),
        ):
            (folder / "keys" / name).touch(mode=0o600)
            (folder / "keys" / name).write_bytes(content)
        self.socket = str(folder / "s" / "crypto-broker-server.sock")
        self._command = [str(binary), "--profiles-dir", str(folder / "profiles"), "--keys-dir", str(folder / "keys")]
        self._command += ["--socket-dir", str(folder / "s"), "--log-level", "warn", *flags]
        self._process: subprocess.Popen[bytes] | None = None
        self._restarting = threading.Lock()

    def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CRYPTO_BROKER_")}
        self._process = subprocess.Popen(self._command, env=environment)

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitpid(self._process.pid, os.WUNTRACED)  # until all its threads have stopped

    def stop(self, number: signal.Signals) -> int:
        """Ends the broker and returns its exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(WAIT_LIMIT)

    def restart(self) -> None:
        """Kills the broker and starts it again. Any thread may call it, and a test may end meanwhile."""
        with self._restarting:
            self.stop(signal.SIGKILL)
            self.start()

    def wait(self) -> None:
        """Returns once the broker serves."""
        with cryptobroker.Client(socket=self.socket, timeout=WAIT_LIMIT) as client:
            client.hash_data(b"", profile="Default")

    @property
    def running(self) -> bool:
        with self._restarting:
            return self._process is not None and self._process.poll() is None


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    path = tempfile.mkdtemp(prefix="py")
    yield Path(path)
    shutil.rmtree(path)


def serve(binary: Path, folder: Path, *flags: str) -> Iterator[Broker]:
    broker = Broker(binary, folder, *flags)
    broker.start()
    yield broker
    if broker.running:
        broker.send(signal.SIGCONT)
        broker.wait()  # a broker that has just begun to start does not know the signal yet
        assert broker.stop(signal.SIGTERM) == 0


@pytest.fixture
def broker(binary: Path, folder: Path) -> Iterator[Broker]:
    """A broker of one test."""
    yield from serve(binary, folder)


@pytest.fixture(scope="module")
def shared(binary: Path) -> Iterator[Broker]:
    """A broker of all tests of a file, which do not stop it."""
    path = tempfile.mkdtemp(prefix="py")
    yield from serve(binary, Path(path))
    shutil.rmtree(path)


THREADS = concurrent.futures.ThreadPoolExecutor(64)


class Either:
    """A client of either kind with methods to wait for: calls of Client are in threads."""

    def __init__(self, client: cryptobroker.Client | cryptobroker.AsyncClient) -> None:
        self.client = client

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)
        if inspect.iscoroutinefunction(method) or not isinstance(self.client, cryptobroker.Client):
            return method

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.get_running_loop().run_in_executor(THREADS, lambda: method(*args, **kwargs))

        return call

    @property
    def active(self) -> int:
        """How many calls have begun and not ended."""
        found = self.client._active
        return found if isinstance(found, int) else len(found)


MakeClient = Callable[..., Either]


@pytest.fixture(params=["threads", "asyncio"])
async def make_client(request: pytest.FixtureRequest) -> AsyncIterator[MakeClient]:
    """Makes clients of one kind, which are closed after the test."""
    made: list[Either] = []

    def make(socket: str, **options: Any) -> Either:
        kind = cryptobroker.Client if request.param == "threads" else cryptobroker.AsyncClient
        options.setdefault("timeout", WAIT_LIMIT)
        made.append(Either(kind(socket=socket, **options)))
        return made[-1]

    yield make
    for client in made:
        await client.close()


@pytest.fixture
def client(make_client: MakeClient, shared: Broker) -> Either:
    """A client of the shared broker."""
    return make_client(shared.socket)
