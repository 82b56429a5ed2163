# SPDX-License-Identifier: Apache-2.0
"""What calls of sessions return. Secrets are left out of what repr prints."""

from __future__ import annotations

from dataclasses import dataclass, field

from cryptobroker._results import Deprecation


@dataclass(frozen=True, slots=True, kw_only=True)
class InitSessionResult:
    """A session that has begun, with the fields of the reply to the client of the application.

    Attributes:
        session_id: the field sessionId.
        server_public_key: the field serverPublicKey.
        enc_alg: the field encAlg.
        expires_in_seconds: the field expiresInSec.
        signature: the signature of a native version in base64.
        signature_algorithm: its algorithm, such as "ecdsa-with-sha-256".
        algorithm: the version of the protocol, such as "session-v1".
        deprecation: the warning of a deprecated profile, else None.
    """

    session_id: str
    server_public_key: str
    enc_alg: str
    expires_in_seconds: int
    signature: str
    signature_algorithm: str
    algorithm: str
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequestResult:
    """A request that was opened.

    Attributes:
        plaintext: the body of the request.
        session_id: the id of the session.
        path: the path in its normal form: the one to serve.
        client_path: the path for seal_reply.
        client_id: the client id of a session of version 2.
        sequence: the sequence of a request of a native version, for seal_reply.
        algorithm: the version of the protocol, such as "session-v1".
        deprecation: the warning of a deprecated profile, else None.
    """

    plaintext: bytes = field(repr=False)
    session_id: str
    path: str
    client_path: str
    client_id: str
    sequence: str
    algorithm: str
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SealReplyResult:
    """Headers and body of an encrypted reply. Headers that are empty do not belong to the version of the protocol.

    Attributes:
        body: the body.
        kid: the header X-Kid.
        enc_alg: the header X-Enc-Alg.
        iv: the header X-IV.
        tag: the header X-Tag.
        aad: the header X-AAD.
        nonce: the header X-Nonce.
        timestamp: the header X-Timestamp.
        idempotency_key: the header X-Idempotency-Key.
        client_id: the header X-ClientId.
        sequence: the header X-Sequence.
        algorithm: the version of the protocol, such as "session-v1".
        deprecation: the warning of a deprecated profile, else None.
    """

    body: bytes
    kid: str
    enc_alg: str
    iv: str
    tag: str
    aad: str
    nonce: str
    timestamp: str
    idempotency_key: str
    client_id: str
    sequence: str
    algorithm: str
    deprecation: Deprecation | None = None
