# SPDX-License-Identifier: Apache-2.0
"""The operations of the broker: requests from arguments, and results from replies.

The docstrings also describe the methods of both clients.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from cryptobroker._calls import Call, Operation
from cryptobroker._errors import Code
from cryptobroker._results import (
    Data,
    DecryptDataResult,
    Deprecation,
    EncryptDataResult,
    HashDataResult,
    Health,
    Key,
    KeyId,
    RawKey,
    SignatureFormat,
    SignCertificateResult,
    SignDataResult,
    VerifyDataResult,
)
from cryptobroker._stubs.cryptobroker.v1 import encrypt_data_pb2, key_source_pb2, service_pb2, sign_data_pb2
from cryptobroker._stubs.cryptobroker.v1 import sign_certificate_pb2 as certificate_pb2

_SERVICE = "/cryptobroker.v1.CryptoService/"


def operation(name: str, reply: Any) -> Operation:
    """Returns an operation of cryptobroker.v1. All of them are on the stream of many calls."""
    exchanged = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).removeprefix("_")
    return Operation(name, _SERVICE + name, reply, exchanged=exchanged)


HASH_DATA = operation("HashData", service_pb2.HashDataResponse)
_SIGN_CERTIFICATE = operation("SignCertificate", certificate_pb2.SignCertificateResponse)
_ENCRYPT_DATA = operation("EncryptData", encrypt_data_pb2.EncryptDataResponse)
_DECRYPT_DATA = operation("DecryptData", encrypt_data_pb2.DecryptDataResponse)
_SIGN_DATA = operation("SignData", sign_data_pb2.SignDataResponse)
_VERIFY_DATA = operation("VerifyData", sign_data_pb2.VerifyDataResponse)


def octets(name: str, value: Data | str) -> bytes:
    """Returns octets, or a text in UTF-8. It raises TypeError for other values."""
    return value.encode() if isinstance(value, str) else data(name, value)


def data(name: str, value: Data) -> bytes:
    """Returns octets, copied if they can change. It raises TypeError for other values, texts among them."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"{name}: found {type(value).__name__}, expected bytes, bytearray or memoryview")


def source_of(name: str, key: Key) -> key_source_pb2.KeySource:
    """Returns the message for a key."""
    if isinstance(key, KeyId):
        return key_source_pb2.KeySource(key_id=key.id)
    if isinstance(key, RawKey):
        return key_source_pb2.KeySource(raw_key=data(name, key.key))
    raise TypeError(f"{name}: found {type(key).__name__}, expected KeyId or RawKey")


def _sources_of(key: Key, post_quantum_key: Key | None) -> key_source_pb2.SignKeySource:
    single = source_of("key", key)
    if post_quantum_key is None:
        return key_source_pb2.SignKeySource(single=single)
    keys = [single, source_of("post_quantum_key", post_quantum_key)]
    return key_source_pb2.SignKeySource(component_keys=key_source_pb2.ComponentKeys(keys=keys))


def hash_data(input: Data, *, profile: str = "", timeout: float | None = None) -> Call[HashDataResult]:
    """Computes a digest with the algorithm of a profile.

    Args:
        input: the data to hash, at most 1 MiB.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    request = service_pb2.HashDataRequest(input=data("input", input), output_format=service_pb2.HASH_OUTPUT_FORMAT_RAW)
    return Call(HASH_DATA, request, read_digest, profile, timeout)


def read_digest(reply: Any, warning: Deprecation | None) -> HashDataResult:
    """Returns the result of hash_data, or of a stream that is hashed."""
    digest = reply.hash_value_raw
    if not digest:
        raise ValueError("digest")
    return HashDataResult(digest, reply.descriptor.algorithm, warning)


def sign_certificate(
    csr: Data | str,
    *,
    ca_private_key: Data | str = b"",
    ca_certificate: Data | str = b"",
    not_before: datetime | None = None,
    not_after: datetime | None = None,
    subject: str = "",
    crl_distribution_points: Iterable[str] = (),
    profile: str = "",
    timeout: float | None = None,
) -> Call[SignCertificateResult]:
    """Issues a certificate by the rules of a profile.

    Args:
        csr: the certificate request (PKCS #10) in PEM, at most 64 KiB.
        ca_private_key: the issuer's private key in PEM, at most 64 KiB. It is empty if the profile
            names a key of the broker, which is safer.
        ca_certificate: the issuer's certificate in PEM, at most 64 KiB. It may be empty if the profile
            names one key of the broker.
        not_before: when the certificate begins to be valid, with a time zone, cut to seconds. None is
            the earliest time that profile and issuer allow.
        not_after: when it ends to be valid. None is the latest time that profile and issuer allow.
        subject: replaces the subject of the request. It is text as in RFC 4514, at most 1 KiB, with
            the components in the order of the certificate.
        crl_distribution_points: at most 16 URLs of at most 2048 bytes each.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    if isinstance(crl_distribution_points, str):
        raise TypeError("crl_distribution_points: found str, expected several URLs")
    request = certificate_pb2.SignCertificateRequest(
        csr=octets("csr", csr).decode(errors="replace"),
        ca_private_key=octets("ca_private_key", ca_private_key).decode(errors="replace"),
        ca_cert=octets("ca_certificate", ca_certificate).decode(errors="replace"),
        crl_distribution_points=list(crl_distribution_points),
        output_format=certificate_pb2.SIGN_OUTPUT_FORMAT_DER,
    )
    call = Call(_SIGN_CERTIFICATE, request, _read_certificate, profile, timeout)
    if subject:
        request.subject = subject
    if not_before is not None:
        request.valid_not_before = _seconds(call, "not_before", not_before)
    if not_after is not None:
        request.valid_not_after = _seconds(call, "not_after", not_after)
    return call


def _seconds(call: Call[Any], name: str, time: datetime) -> int:
    if time.utcoffset() is None:
        raise call.error(Code.INVALID_ARGUMENT, f"{name} is {time}, expected a time with a time zone")
    seconds = calendar.timegm(time.utctimetuple())
    if seconds < 0:
        raise call.error(Code.INVALID_ARGUMENT, f"{name} is {time}, expected no time before 1970")
    return seconds


def _read_certificate(
    reply: certificate_pb2.SignCertificateResponse, warning: Deprecation | None
) -> SignCertificateResult:
    if not reply.der:
        raise ValueError("certificate")
    return SignCertificateResult(reply.der, reply.descriptor.algorithm, warning)


def encrypt_data(
    plaintext: Data,
    *,
    key: Key,
    nonce: Data = b"",
    additional_data: Data = b"",
    profile: str = "",
    timeout: float | None = None,
) -> Call[EncryptDataResult]:
    """Encrypts with the algorithm of a profile.

    If the call is made again and the broker makes the nonce, the second encryption has another nonce.

    Args:
        plaintext: the data to encrypt, at most 1 MiB.
        key: the AES key.
        nonce: 12 bytes, which must never be used again with the same key. It is empty if the broker
            makes the nonce: the profile has NonceStrategy "random".
        additional_data: it is authenticated but not encrypted, at most 64 KiB.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    parameters = encrypt_data_pb2.EncryptMetadata(nonce=data("nonce", nonce))
    if additional_data:
        parameters.aad = data("additional_data", additional_data)
    request = encrypt_data_pb2.EncryptDataRequest(
        key_source=source_of("key", key), plaintext=data("plaintext", plaintext), encrypt_metadata=parameters
    )
    return Call(_ENCRYPT_DATA, request, _read_ciphertext, profile, timeout)


def _read_ciphertext(reply: encrypt_data_pb2.EncryptDataResponse, warning: Deprecation | None) -> EncryptDataResult:
    used = reply.cipher_metadata
    if not used.nonce or not used.tag:
        raise ValueError("nonce and tag")
    return EncryptDataResult(reply.ciphertext, used.nonce, used.tag, used.key_id, reply.descriptor.algorithm, warning)


def decrypt_data(
    ciphertext: Data,
    *,
    key: Key,
    nonce: Data,
    tag: Data,
    additional_data: Data = b"",
    profile: str = "",
    timeout: float | None = None,
) -> Call[DecryptDataResult]:
    """Decrypts with the algorithm of a profile. It raises InvalidArgumentError if the ciphertext does not
    authenticate.

    Args:
        ciphertext: the attribute of the EncryptDataResult, as nonce and tag are.
        key: the AES key.
        nonce: the nonce that was used.
        tag: the authentication tag.
        additional_data: the additional data of the encryption.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    parameters = encrypt_data_pb2.DecryptMetadata(nonce=data("nonce", nonce), tag=data("tag", tag))
    if additional_data:
        parameters.aad = data("additional_data", additional_data)
    request = encrypt_data_pb2.DecryptDataRequest(
        key_source=source_of("key", key), ciphertext=data("ciphertext", ciphertext), decrypt_metadata=parameters
    )
    return Call(_DECRYPT_DATA, request, _read_plaintext, profile, timeout)


def _read_plaintext(reply: encrypt_data_pb2.DecryptDataResponse, warning: Deprecation | None) -> DecryptDataResult:
    return DecryptDataResult(reply.plaintext, warning)


def sign_data(
    input: Data,
    *,
    key: Key,
    post_quantum_key: Key | None = None,
    format: SignatureFormat = SignatureFormat.DEFAULT,
    profile: str = "",
    timeout: float | None = None,
) -> Call[SignDataResult]:
    """Signs with the algorithm of a profile.

    Args:
        input: the data to sign, at most 1 MiB.
        key: the private key. For a hybrid it is the key of the classical algorithm.
        post_quantum_key: the second key of a hybrid.
        format: the format of the signature.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    request = sign_data_pb2.SignDataRequest(
        key_source=_sources_of(key, post_quantum_key),
        input=data("input", input),
        signature_format=sign_data_pb2.SignatureFormat.Name(SignatureFormat(format).value),
    )
    return Call(_SIGN_DATA, request, _read_signature, profile, timeout)


def _read_signature(reply: sign_data_pb2.SignDataResponse, warning: Deprecation | None) -> SignDataResult:
    if not reply.signature:
        raise ValueError("signature")
    return SignDataResult(reply.signature, reply.descriptor.algorithm, warning)


def verify_data(
    input: Data,
    signature: Data,
    *,
    key: Key,
    post_quantum_key: Key | None = None,
    format: SignatureFormat = SignatureFormat.DEFAULT,
    profile: str = "",
    timeout: float | None = None,
) -> Call[VerifyDataResult]:
    """Verifies a signature. It raises InvalidArgumentError for a signature that does not have the format, so
    that callers can tell a mistake from a forgery.

    Args:
        input: the data that was signed, at most 1 MiB.
        signature: the signature, at most 64 KiB.
        key: a public key, a certificate or a private key. For a hybrid it is the key of the classical
            algorithm.
        post_quantum_key: the second key of a hybrid.
        format: the format of the signature.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    request = sign_data_pb2.VerifyDataRequest(
        key_source=_sources_of(key, post_quantum_key),
        input=data("input", input),
        signature=data("signature", signature),
        signature_format=sign_data_pb2.SignatureFormat.Name(SignatureFormat(format).value),
    )
    return Call(_VERIFY_DATA, request, _read_verdict, profile, timeout)


def _read_verdict(reply: sign_data_pb2.VerifyDataResponse, warning: Deprecation | None) -> VerifyDataResult:
    return VerifyDataResult(reply.valid, warning)


class _Empty:
    """The request for the health, which has no fields."""

    def SerializeToString(self) -> bytes:  # noqa: N802 (the name of protobuf)
        return b""


class _HealthReply:
    @staticmethod
    def FromString(encoded: bytes) -> Health:  # noqa: N802 (the name of protobuf)
        """Returns the health of a HealthCheckResponse, whose only field is the number 1."""
        known = {b"\x08\x01": Health.SERVING, b"\x08\x02": Health.NOT_SERVING}
        return known.get(encoded, Health.UNKNOWN)


_HEALTH = Operation("Health", "/grpc.health.v1.Health/Check", _HealthReply, profiled=False)


def health(*, timeout: float | None = None) -> Call[Health]:
    """Returns the health of the broker. It is tried once, and raises UnavailableError at once if the broker
    cannot be reached.

    Args:
        timeout: the time for the call in seconds.
    """
    return Call(_HEALTH, _Empty(), lambda reply, _: reply, timeout=timeout)
