# SPDX-License-Identifier: Apache-2.0
"""The operations of encrypted sessions. The docstrings also describe the methods of both clients."""

from __future__ import annotations

from typing import Any

from cryptobroker._calls import Call, Operation
from cryptobroker._operations import data
from cryptobroker._results import Data, Deprecation
from cryptobroker._session_results import InitSessionResult, OpenRequestResult, SealReplyResult
from cryptobroker._stubs.cryptobroker.session.v1 import session_pb2


def _operation(name: str, reply: Any) -> Operation:
    """Returns an operation of cryptobroker.session.v1."""
    return Operation(name, "/cryptobroker.session.v1.SessionService/" + name, reply)


_INIT_SESSION = _operation("InitSession", session_pb2.InitSessionResponse)
_OPEN_REQUEST = _operation("OpenRequest", session_pb2.OpenRequestResponse)
_SEAL_REPLY = _operation("SealReply", session_pb2.SealReplyResponse)
_CLOSE_SESSION = _operation("CloseSession", session_pb2.CloseSessionResponse)
_REKEY_SESSION = _operation("RekeySession", session_pb2.RekeySessionResponse)


def init_session(
    *,
    client_public_key: str,
    key_agreement: str = "",
    ttl_seconds: int = 0,
    nonce: str = "",
    timestamp: str = "",
    client_id: str = "",
    profile: str = "",
    timeout: float | None = None,
) -> Call[InitSessionResult]:
    """Agrees on a key with a client of the application. If the call is made again, the broker begins another session.

    Args:
        client_public_key: the field clientPublicKey of the body that the client of the application sent.
        key_agreement: the field keyAgreement of the body.
        ttl_seconds: the field ttlSec of the body.
        nonce: the header X-Nonce, empty in the native versions of the protocol.
        timestamp: the header X-Timestamp, empty in the native versions.
        client_id: the header X-ClientId of version 2.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    request = session_pb2.InitSessionRequest(
        key_agreement=key_agreement,
        client_public_key=client_public_key,
        ttl_sec=ttl_seconds,
        nonce=nonce,
        timestamp=timestamp,
        client_id=client_id,
    )
    return Call(_INIT_SESSION, request, _read_session, profile, timeout)


def _read_session(reply: session_pb2.InitSessionResponse, warning: Deprecation | None) -> InitSessionResult:
    if not reply.session_id or not reply.server_public_key:
        raise ValueError("session")
    return InitSessionResult(
        session_id=reply.session_id,
        server_public_key=reply.server_public_key,
        enc_alg=reply.enc_alg,
        expires_in_seconds=reply.expires_in_sec,
        signature=reply.signature,
        signature_algorithm=reply.signature_algorithm,
        algorithm=reply.descriptor.algorithm,
        deprecation=warning,
    )


def open_request(
    body: Data,
    *,
    method: str,
    path: str,
    kid: str,
    enc_alg: str,
    iv: str = "",
    tag: str = "",
    aad: str = "",
    nonce: str = "",
    timestamp: str = "",
    idempotency_key: str = "",
    client_id: str = "",
    sequence: str = "",
    profile: str = "",
    timeout: float | None = None,
) -> Call[OpenRequestResult]:
    """Decrypts a request of a session, with the texts that the client of the application sent.

    The broker opens each request once. If the connection breaks while the broker opens a request, the client
    asks again, and the broker may refuse the request as opened before: then the client of the application has to
    send a new one.

    Args:
        body: the body, at most 1 MiB.
        method: the method of the HTTP request.
        path: its path without the query.
        kid: the header X-Kid.
        enc_alg: the header X-Enc-Alg.
        iv: the header X-IV of version 1.
        tag: the header X-Tag of version 1.
        aad: the header X-AAD of version 1.
        nonce: the header X-Nonce of version 1.
        timestamp: the header X-Timestamp of version 1 and of the native versions.
        idempotency_key: the header X-Idempotency-Key of version 2.
        client_id: the header X-ClientId of version 2.
        sequence: the header X-Sequence of the native versions.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    request = session_pb2.OpenRequestRequest(
        method=method,
        path=path,
        kid=kid,
        enc_alg=enc_alg,
        iv=iv,
        tag=tag,
        aad=aad,
        nonce=nonce,
        timestamp=timestamp,
        idempotency_key=idempotency_key,
        client_id=client_id,
        sequence=sequence,
        body=data("body", body),
    )
    return Call(_OPEN_REQUEST, request, _read_request, profile, timeout)


def _read_request(reply: session_pb2.OpenRequestResponse, warning: Deprecation | None) -> OpenRequestResult:
    if not reply.session_id:
        raise ValueError("session")
    return OpenRequestResult(
        plaintext=reply.plaintext,
        session_id=reply.session_id,
        path=reply.path,
        client_path=reply.client_path,
        client_id=reply.client_id,
        sequence=reply.sequence,
        algorithm=reply.descriptor.algorithm,
        deprecation=warning,
    )


def seal_reply(
    plaintext: Data,
    *,
    session_id: str,
    client_path: str,
    sequence: str = "",
    profile: str = "",
    timeout: float | None = None,
) -> Call[SealReplyResult]:
    """Encrypts a reply to a request of a session.

    If the call is made again, the broker encrypts with another IV and another nonce.

    Args:
        plaintext: the reply, at most 1 MiB.
        session_id: the attribute of the OpenRequestResult, as client_path and sequence are.
        client_path: the path that the client of the application knows.
        sequence: the sequence of a request of a native version.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    request = session_pb2.SealReplyRequest(
        session_id=session_id, client_path=client_path, sequence=sequence, plaintext=data("plaintext", plaintext)
    )
    return Call(_SEAL_REPLY, request, _read_reply, profile, timeout)


def _read_reply(reply: session_pb2.SealReplyResponse, warning: Deprecation | None) -> SealReplyResult:
    if not reply.kid:
        raise ValueError("session")
    return SealReplyResult(
        body=reply.body,
        kid=reply.kid,
        enc_alg=reply.enc_alg,
        iv=reply.iv,
        tag=reply.tag,
        aad=reply.aad,
        nonce=reply.nonce,
        timestamp=reply.timestamp,
        idempotency_key=reply.idempotency_key,
        client_id=reply.client_id,
        sequence=reply.sequence,
        algorithm=reply.descriptor.algorithm,
        deprecation=warning,
    )


def close_session(session_id: str, *, profile: str = "", timeout: float | None = None) -> Call[None]:
    """Ends a session, and the broker overwrites its key. It is no error if there is no such session.

    Args:
        session_id: the id of the session.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    request = session_pb2.CloseSessionRequest(session_id=session_id)
    return Call(_CLOSE_SESSION, request, lambda *_: None, profile, timeout)


def rekey_session(
    body: Data,
    *,
    method: str,
    path: str,
    kid: str,
    enc_alg: str,
    timestamp: str,
    sequence: str,
    profile: str = "",
    timeout: float | None = None,
) -> Call[OpenRequestResult]:
    """Gives a session of a native version its next key, if the request of the client of the application asks for it.

    The result has no plaintext. seal_reply makes the reply, with an empty plaintext. If the connection breaks
    while the broker serves the call, the client asks again, and the broker refuses what it has done already: then
    the client of the application goes on with the next key.

    Args:
        body: the body, at most 1 MiB.
        method: the method of the HTTP request.
        path: its path without the query.
        kid: the header X-Kid.
        enc_alg: the header X-Enc-Alg.
        timestamp: the header X-Timestamp.
        sequence: the header X-Sequence.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    request = session_pb2.RekeySessionRequest(
        method=method,
        path=path,
        kid=kid,
        enc_alg=enc_alg,
        timestamp=timestamp,
        sequence=sequence,
        body=data("body", body),
    )
    return Call(_REKEY_SESSION, request, _read_rekeyed, profile, timeout)


def _read_rekeyed(reply: session_pb2.RekeySessionResponse, warning: Deprecation | None) -> OpenRequestResult:
    if not reply.session_id:
        raise ValueError("session")
    return OpenRequestResult(
        plaintext=b"",
        session_id=reply.session_id,
        path=reply.path,
        client_path=reply.client_path,
        client_id="",
        sequence=reply.sequence,
        algorithm=reply.descriptor.algorithm,
        deprecation=warning,
    )
