# SPDX-License-Identifier: Apache-2.0
"""Every operation against a broker, by both clients."""

from __future__ import annotations

import asyncio
import datetime
import hashlib

import pytest
from conftest import PAIR, SESSIONS_KEY, Broker, Either, MakeClient, pkcs8
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.x509.oid import NameOID

import cryptobroker
from cryptobroker import Health, KeyId, RawKey, SignatureFormat, WrappedKey


@pytest.mark.parametrize("size", [0, 3, 10_000, 17_000, 1 << 20])
async def test_a_digest_is_made_by_the_algorithm_of_the_profile(client: Either, size: int) -> None:
    got = await client.hash_data(b"\x07" * size, profile="Default")
    want = hashlib.sha256(b"\x07" * size)
    assert (got.digest, got.hex, got.algorithm) == (want.digest(), want.hexdigest(), "sha-256")
    assert got.deprecation is None


async def test_each_kind_of_octets_is_an_input(client: Either) -> None:
    want = hashlib.sha256(b"abc").digest()
    for octets in (b"abc", bytearray(b"abc"), memoryview(b"abc")):
        assert (await client.hash_data(octets, profile="Default")).digest == want
    for wrong in ("abc", 3, None, ["abc"]):
        with pytest.raises(TypeError, match="input: found "):
            await client.hash_data(wrong, profile="Default")


async def test_many_calls_at_a_time_each_get_their_reply(client: Either) -> None:
    inputs = [b"input %d" % n for n in range(300)]
    got = await asyncio.gather(*(client.hash_data(i, profile="Default") for i in inputs))
    assert [g.digest for g in got] == [hashlib.sha256(i).digest() for i in inputs]


RAW = RawKey(b"r" * 16)


@pytest.mark.parametrize(
    ("profile", "key", "plaintext", "nonce", "additional_data"),
    [
        pytest.param("Orders", KeyId("orders"), b"4711 boxes", b"", b"12", id="by a key of the broker"),
        pytest.param("Own", RAW, b"4711 boxes", b"twelve bytes", b"", id="by a key of the request"),
        pytest.param("Orders", KeyId("orders"), b"", b"", b"", id="nothing"),
        pytest.param("Orders", KeyId("orders"), bytes(1 << 20), b"", b"", id="a mebibyte"),
    ],
)
async def test_what_is_encrypted_is_decrypted(
    client: Either, profile: str, key: KeyId | RawKey, plaintext: bytes, nonce: bytes, additional_data: bytes
) -> None:
    sealed = await client.encrypt_data(
        plaintext, key=key, nonce=nonce, additional_data=additional_data, profile=profile
    )
    assert (len(sealed.nonce), len(sealed.tag), sealed.algorithm) == (12, 16, "aes-gcm")
    assert sealed.key_id == (key.id if isinstance(key, KeyId) else "")
    opened = await client.decrypt_data(
        sealed.ciphertext, key=key, nonce=sealed.nonce, tag=sealed.tag, additional_data=additional_data, profile=profile
    )
    assert opened.plaintext == plaintext
    octets = b"k" * 32 if isinstance(key, KeyId) else b"r" * 16
    assert AESGCM(octets).decrypt(sealed.nonce, sealed.ciphertext + sealed.tag, additional_data) == plaintext
    with pytest.raises(cryptobroker.InvalidArgumentError, match="does not authenticate"):
        await client.decrypt_data(
            sealed.ciphertext, key=key, nonce=sealed.nonce, tag=sealed.tag, additional_data=b"13", profile=profile
        )


async def test_a_signature_by_ed25519_is_verified_by_others_and_by_the_broker(client: Either) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    raw = RawKey(pkcs8(key))
    signed = await client.sign_data(b"We agree.", key=raw, profile="Receipts")
    key.public_key().verify(signed.signature, b"We agree.")
    assert signed.algorithm == "ed25519"
    for text, valid in ((b"We agree.", True), (b"We do not.", False)):
        verified = await client.verify_data(text, signed.signature, key=raw, profile="Receipts")
        assert verified.valid is valid
        assert bool(verified) is valid, "a result can be used as a condition"


async def test_a_signature_by_ecdsa_has_the_format_of_the_request(client: Either) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    raw = RawKey(pkcs8(key))
    signed = await client.sign_data(b"We agree.", key=raw, format=SignatureFormat.DER, profile="Contracts")
    key.public_key().verify(signed.signature, b"We agree.", ec.ECDSA(hashes.SHA256()))
    with pytest.raises(InvalidSignature):
        key.public_key().verify(signed.signature, b"We do not.", ec.ECDSA(hashes.SHA256()))
    verified = await client.verify_data(
        b"We agree.", signed.signature, key=raw, format=SignatureFormat.DER, profile="Contracts"
    )
    assert verified.valid
    with pytest.raises(cryptobroker.InvalidArgumentError):
        await client.verify_data(b"We agree.", b"no DER", key=raw, format=SignatureFormat.DER, profile="Contracts")


async def test_a_data_key_is_wrapped_unwrapped_and_wrapped_again(client: Either) -> None:
    made = await client.generate_data_key("orders", context=b"tenant a", profile="Data")
    assert made.data_key is not None
    assert (len(made.data_key), made.algorithm) == (32, "aes-gcm")
    got = await client.unwrap_key(made.wrapped_key, context=b"tenant a", profile="Data")
    assert got.data_key == made.data_key
    alone = await client.generate_data_key("orders", without_data_key=True, profile="Data")
    assert alone.data_key is None
    wrapped = await client.wrap_key("orders", b"d" * 32, context=b"x", profile="Data")
    again = await client.rewrap_key(wrapped.wrapped_key, context=b"x", key_id="orders", profile="Data")
    got = await client.unwrap_key(again.wrapped_key, context=b"x", profile="Data")
    assert got.data_key == b"d" * 32
    with pytest.raises(cryptobroker.InvalidArgumentError):
        await client.unwrap_key(wrapped.wrapped_key, context=b"y", profile="Data")


async def test_each_key_of_a_batch_has_its_own_result(client: Either) -> None:
    made = await client.generate_data_key("orders", context=b"tenant a", profile="Data")
    keys = [WrappedKey(made.wrapped_key), WrappedKey(made.wrapped_key, b"tenant a")]
    batch = await client.unwrap_batch(keys, profile="Data")
    assert isinstance(batch.keys[0].error, cryptobroker.InvalidArgumentError)
    assert (batch.keys[0].error.operation, batch.keys[0].error.profile) == ("UnwrapBatch", "Data")
    assert batch.keys[0].data_key is None
    assert (batch.keys[1].error, batch.keys[1].data_key) == (None, made.data_key)


async def test_a_public_key_is_the_one_of_the_broker(client: Either) -> None:
    got = await client.get_public_key("pair", profile="Keys")
    want = PAIR.public_key()
    assert got.der == want.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert serialization.load_pem_public_key(got.pem.encode()) == want


async def test_a_key_of_the_broker_signs(client: Either) -> None:
    signed = await client.sign_data(b"We agree.", key=KeyId("sessions"), profile="Keys")
    SESSIONS_KEY.public_key().verify(signed.signature, b"We agree.")


def _authority() -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority")])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(hours=2))
    builder = builder.not_valid_after(now + datetime.timedelta(days=700))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    usage = x509.KeyUsage(False, False, False, False, False, True, False, False, False)
    return key, builder.add_extension(usage, critical=True).sign(key, hashes.SHA384())


def _request() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "web")])
    request = x509.CertificateSigningRequestBuilder(name).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM).decode()


async def test_a_certificate_is_issued_as_it_was_asked_for(client: Either) -> None:
    key, authority = _authority()
    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    since, until = now - datetime.timedelta(minutes=1), now + datetime.timedelta(hours=1)
    points = ["http://crl.example.com/a", "http://crl.example.com/b"]
    issued = await client.sign_certificate(
        _request(),
        ca_private_key=pkcs8(key),
        ca_certificate=authority.public_bytes(serialization.Encoding.PEM),
        not_before=since,
        not_after=until,
        subject="CN=shop,O=Example",
        crl_distribution_points=points,
        profile="Servers",
    )
    got = x509.load_der_x509_certificate(issued.certificate)
    assert x509.load_pem_x509_certificate(issued.pem.encode()) == got
    got.verify_directly_issued_by(authority)
    assert (got.not_valid_before_utc, got.not_valid_after_utc) == (since, until)
    assert [part.value for part in got.subject] == ["shop", "Example"]
    lists = got.extensions.get_extension_for_class(x509.CRLDistributionPoints).value
    assert [name.value for point in lists for name in point.full_name or ()] == points


@pytest.mark.parametrize(
    ("time", "reason"),
    [
        (datetime.datetime(1969, 12, 31, tzinfo=datetime.timezone.utc), "expected no time before 1970"),
        (datetime.datetime(2026, 12, 31), "expected a time with a time zone"),
    ],
)
async def test_a_time_that_no_certificate_has_is_refused(
    make_client: MakeClient, time: datetime.datetime, reason: str
) -> None:
    client = make_client("/nowhere")
    with pytest.raises(cryptobroker.InvalidArgumentError, match=f"not_after is {time.year}.*{reason}"):
        await client.sign_certificate("", not_after=time, profile="P")


async def test_a_warning_is_in_the_result_and_passed_on_once(make_client: MakeClient, shared: Broker) -> None:
    seen: list[cryptobroker.Deprecation] = []
    client = make_client(shared.socket, profile="Old", on_deprecation=seen.append)
    want = cryptobroker.Deprecation("Old", "Default", "2026-01-01", "2027-01-01", "It is long.")
    for _ in range(3):
        got = await client.hash_data(b"abc")
        assert (got.digest, got.deprecation) == (hashlib.sha512(b"abc").digest(), want)
    assert seen == [want]


async def test_the_health_of_the_broker_is_the_result(client: Either) -> None:
    await client.hash_data(b"", profile="Default")  # it waits for the broker
    assert await client.health() is Health.SERVING


async def test_the_socket_is_the_one_of_the_environment(
    make_client: MakeClient, shared: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cryptobroker.SOCKET_VARIABLE, shared.socket)
    assert (await make_client(None).hash_data(b"", profile="Default")).digest == hashlib.sha256().digest()
    monkeypatch.delenv(cryptobroker.SOCKET_VARIABLE)
    other = make_client(None)
    assert other.client._settings.socket == "/tmp/open-crypto-broker/crypto-broker-server.sock"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"socket": ""}, "socket: found an empty path"),
        ({"socket": "/s", "timeout": 0}, "timeout: found 0, expected a positive number of seconds, or None"),
        ({"socket": "/s", "retry_budget": -1}, "retry_budget: found -1, expected 0 or more seconds"),
    ],
)
async def test_options_that_are_not_valid_are_refused(
    make_client: MakeClient, options: dict[str, object], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        make_client(**options)
