# SPDX-License-Identifier: Apache-2.0
"""Encrypted sessions of clients of an application, which the test plays itself."""

from __future__ import annotations

import base64
import os
import time

import pytest
from conftest import Either
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

import cryptobroker


def _text(octets: bytes) -> str:
    return base64.b64encode(octets).decode()


def _point(key: ec.EllipticCurvePrivateKey) -> str:
    point = key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    return _text(point)


def _cipher(own: ec.EllipticCurvePrivateKey, begun: cryptobroker.InitSessionResult) -> AESGCM:
    """The cipher of a client of the application."""
    server = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), base64.b64decode(begun.server_public_key))
    derived = HKDF(hashes.SHA256(), 32, begun.session_id.encode(), b"SESSION|A256GCM|AUTH")
    return AESGCM(derived.derive(own.exchange(ec.ECDH(), server)))


async def test_an_application_serves_a_session(client: Either) -> None:
    own = ec.generate_private_key(ec.SECP256R1())
    now = str(time.time_ns() // 1_000_000)
    begun = await client.init_session(
        key_agreement="ECDH_P256",
        client_public_key=_point(own),
        ttl_seconds=1800,
        nonce="n0",
        timestamp=now,
        profile="Shop",
    )
    assert (begun.expires_in_seconds, begun.algorithm, begun.enc_alg) == (1800, "session-v1", "A256GCM")
    cipher, kid = _cipher(own, begun), f"session:{begun.session_id}"
    aad, iv = f"POST|/buy|{now}|n1|{kid}".encode(), os.urandom(12)
    sealed = cipher.encrypt(iv, b"a book", aad)
    request = {
        "body": _text(sealed[:-16]).encode(),
        "method": "POST",
        "path": "/buy",
        "kid": kid,
        "enc_alg": begun.enc_alg,
        "iv": _text(iv),
        "tag": _text(sealed[-16:]),
        "aad": _text(aad),
        "nonce": "n1",
        "timestamp": now,
        "profile": "Shop",
    }
    opened = await client.open_request(**request)
    assert (opened.plaintext, opened.session_id, opened.path) == (b"a book", begun.session_id, "/buy")
    assert "a book" not in repr(opened)
    with pytest.raises(cryptobroker.InvalidArgumentError):
        await client.open_request(**request)
    reply = await client.seal_reply(
        b"sold", session_id=opened.session_id, client_path=opened.client_path, profile="Shop"
    )
    octets = base64.b64decode(reply.body) + base64.b64decode(reply.tag)
    replied = f"200|/buy|{reply.timestamp}|{reply.nonce}|{kid}".encode()
    assert cipher.decrypt(base64.b64decode(reply.iv), octets, replied) == b"sold"
    for _ in range(2):
        assert await client.close_session(begun.session_id, profile="Shop") is None
    with pytest.raises(cryptobroker.CryptoBrokerError):
        await client.seal_reply(b"sold", session_id=begun.session_id, client_path="/buy", profile="Shop")


async def test_a_native_session_is_signed_by_the_broker(client: Either) -> None:
    begun = await client.init_session(
        key_agreement="HPKE_P256", client_public_key=_point(ec.generate_private_key(ec.SECP256R1())), profile="Native"
    )
    assert (begun.algorithm, begun.signature_algorithm) == ("session-hpke-p256", "ed25519")
    assert len(base64.b64decode(begun.signature)) == 64
    request = {"method": "POST", "path": "/rekey", "kid": f"session:{begun.session_id}", "enc_alg": begun.enc_alg}
    with pytest.raises(cryptobroker.InvalidArgumentError) as raised:
        await client.rekey_session(b"", **request, timestamp="1", sequence="1", profile="Native")
    assert (raised.value.operation, raised.value.profile) == ("RekeySession", "Native")
    await client.close_session(begun.session_id, profile="Native")
