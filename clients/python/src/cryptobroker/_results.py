# SPDX-License-Identifier: Apache-2.0
"""What calls take and return. Secrets are left out of what repr prints."""

from __future__ import annotations

import enum
import ssl
from dataclasses import dataclass, field
from typing import TypeAlias

from cryptobroker._errors import CryptoBrokerError

Data: TypeAlias = "bytes | bytearray | memoryview"
"""Octets. The client copies them."""


@dataclass(frozen=True, slots=True)
class KeyId:
    """A key of the broker. The profile has to list it.

    Attributes:
        id: at most 64 bytes of printable ASCII without spaces.
    """

    id: str


@dataclass(frozen=True, slots=True)
class RawKey:
    """A key that the request brings. A profile that lists keys of the broker refuses it.

    Attributes:
        key: the 16, 24 or 32 bytes of an AES key, or a key in PEM or DER, at most 64 KiB.
    """

    key: Data = field(repr=False)


Key: TypeAlias = "KeyId | RawKey"
"""A key of the broker, or a key that the request brings."""


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The trace that a call belongs to (W3C Trace Context).

    Attributes:
        trace_id: 32 hexadecimal digits, as in the header traceparent.
        span_id: 16 hexadecimal digits.
        flags: 2 hexadecimal digits.
        state: the value of the header tracestate.
        correlation_id: an id that the caller chooses, at most 128 characters of printable ASCII.
            Audit records have it.
    """

    trace_id: str = ""
    span_id: str = ""
    flags: str = ""
    state: str = ""
    correlation_id: str = ""


@dataclass(frozen=True, slots=True)
class Deprecation:
    """Announces the end of a profile. An attribute is empty if the profile does not have it.

    Attributes:
        profile: the name of the profile.
        replaced_by: the name of the profile to use instead.
        since: since when the profile should not be used.
        remove_after: the time after which the profile may be removed.
        reason: why the profile should not be used.
    """

    profile: str
    replaced_by: str = ""
    since: str = ""
    remove_after: str = ""
    reason: str = ""


class Health(enum.Enum):
    """The health of a broker, with the numbers of grpc.health.v1.HealthCheckResponse."""

    UNKNOWN = 0
    SERVING = 1
    """The broker has profiles and serves calls."""
    NOT_SERVING = 2
    """The broker has no profiles yet, or shuts down."""


class SignatureFormat(enum.Enum):
    """The encoding of a signature."""

    DEFAULT = 0
    """The format of the profile, or RAW if the profile has none."""
    RAW = 1
    """r and s joined for ECDSA, and the octets of the algorithm otherwise."""
    DER = 2
    """An ECDSA-Sig-Value (RFC 3279) for ECDSA, and the octets of the algorithm otherwise."""
    PEM = 3
    """DER in PEM with the label SIGNATURE."""
    CMS = 4
    """A detached SignedData (RFC 5652)."""


@dataclass(frozen=True, slots=True)
class HashDataResult:
    """A digest.

    Attributes:
        digest: the digest.
        algorithm: the algorithm of the profile, such as "sha3-512".
        deprecation: the warning of a deprecated profile, else None.
    """

    digest: bytes
    algorithm: str
    deprecation: Deprecation | None = None

    @property
    def hex(self) -> str:
        """The digest in lower-case hexadecimal digits."""
        return self.digest.hex()


@dataclass(frozen=True, slots=True)
class SignCertificateResult:
    """A certificate.

    Attributes:
        certificate: the certificate in DER.
        algorithm: the signature algorithm of the profile, such as "ecdsa-with-SHA256".
        deprecation: the warning of a deprecated profile, else None.
    """

    certificate: bytes
    algorithm: str
    deprecation: Deprecation | None = None

    @property
    def pem(self) -> str:
        """The certificate in PEM."""
        return ssl.DER_cert_to_PEM_cert(self.certificate)


@dataclass(frozen=True, slots=True)
class EncryptDataResult:
    """A ciphertext. Decryption needs it together with the key and the additional data. None of it is secret.

    Attributes:
        ciphertext: it is as long as the plaintext.
        nonce: the nonce that was used.
        tag: the authentication tag.
        key_id: the id of the key, for decrypt_data; empty if the request brought the key. If its key
            manager has versions of the key, it names the version.
        algorithm: the algorithm of the profile, such as "aes-gcm".
        deprecation: the warning of a deprecated profile, else None.
    """

    ciphertext: bytes
    nonce: bytes
    tag: bytes
    key_id: str
    algorithm: str
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True)
class DecryptDataResult:
    """An authentic plaintext.

    Attributes:
        plaintext: the plaintext.
        deprecation: the warning of a deprecated profile, else None.
    """

    plaintext: bytes = field(repr=False)
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True)
class StreamResult:
    """How a stream was encrypted or decrypted.

    Attributes:
        algorithm: the algorithm of the stream, such as "aes256-gcm-hkdf-64kb".
        deprecation: the warning of a deprecated profile, else None.
    """

    algorithm: str
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True)
class SignDataResult:
    """A signature.

    Attributes:
        signature: the signature in the format of the request.
        algorithm: the algorithm of the profile, such as "ed25519".
        deprecation: the warning of a deprecated profile, else None.
    """

    signature: bytes
    algorithm: str
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True)
class VerifyDataResult:
    """Whether a signature is valid. The result of a signature that is not valid is false.

    Attributes:
        valid: whether the key has made the signature of the input.
        deprecation: the warning of a deprecated profile, else None.
    """

    valid: bool
    deprecation: Deprecation | None = None

    def __bool__(self) -> bool:
        return self.valid


@dataclass(frozen=True, slots=True)
class GenerateDataKeyResult:
    """A new data key.

    Attributes:
        data_key: the data key, of the size that the profile has. It is None with without_data_key.
        wrapped_key: the wrapped data key, which is not secret.
        algorithm: the wrapping algorithm, such as "aes-gcm".
        deprecation: the warning of a deprecated profile, else None.
    """

    data_key: bytes | None = field(repr=False)
    wrapped_key: bytes
    algorithm: str
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True)
class WrapKeyResult:
    """A wrapped data key.

    Attributes:
        wrapped_key: the wrapped data key, which is not secret.
        algorithm: the wrapping algorithm, such as "aes-gcm".
        deprecation: the warning of a deprecated profile, else None.
    """

    wrapped_key: bytes
    algorithm: str
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True)
class UnwrapKeyResult:
    """A data key.

    Attributes:
        data_key: the authentic data key.
        algorithm: the wrapping algorithm, such as "aes-gcm".
        deprecation: the warning of a deprecated profile, else None.
    """

    data_key: bytes = field(repr=False)
    algorithm: str
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A wrapped key with its context.

    Attributes:
        wrapped_key: the attribute of the result that made the wrapped key.
        context: the context of the wrapped key, empty if it has none.
    """

    wrapped_key: Data
    context: Data = b""


@dataclass(frozen=True, slots=True)
class UnwrappedKey:
    """The result for one key of a batch.

    Attributes:
        data_key: the authentic data key, None if there is an error.
        error: the error that unwrap_key would have raised, else None.
    """

    data_key: bytes | None = field(repr=False)
    error: CryptoBrokerError | None = None


@dataclass(frozen=True, slots=True)
class UnwrapBatchResult:
    """The results of a batch.

    Attributes:
        keys: the results in the order of the request.
        deprecation: the warning of a deprecated profile, else None.
    """

    keys: tuple[UnwrappedKey, ...]
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True)
class RewrapKeyResult:
    """A key that was wrapped again.

    Attributes:
        wrapped_key: the wrapped key for the same data key.
        unchanged: whether wrapped_key is the key of the request, because a new one would have the
            same key, version and algorithm.
        algorithm: the wrapping algorithm, such as "aes-gcm".
        deprecation: the warning of a deprecated profile, else None.
    """

    wrapped_key: bytes
    unchanged: bool
    algorithm: str
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True)
class GetPublicKeyResult:
    """The public key of a key pair.

    Attributes:
        der: the SubjectPublicKeyInfo (RFC 5280, section 4.1.2.7).
        pem: the same in PEM.
        version: the version of the key. It is empty if the key has no versions.
        deprecation: the warning of a deprecated profile, else None.
    """

    der: bytes
    pem: str
    version: str
    deprecation: Deprecation | None = None
