# SPDX-License-Identifier: Apache-2.0
"""Calls a Crypto Broker over a Unix socket.

The broker does cryptographic operations. A named profile decides their algorithms, keys and limits. Client
is for threads, AsyncClient is for asyncio. A call that fails raises a CryptoBrokerError.
"""

from cryptobroker._async_client import AsyncClient
from cryptobroker._async_streams import AsyncCipherStream, AsyncReadable, AsyncSource
from cryptobroker._client import Client
from cryptobroker._errors import (
    AbortedError,
    CanceledError,
    ClientClosedError,
    Code,
    CryptoBrokerError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    NotServedError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from cryptobroker._results import (
    Data,
    DecryptDataResult,
    Deprecation,
    EncryptDataResult,
    GenerateDataKeyResult,
    GetPublicKeyResult,
    HashDataResult,
    Health,
    Key,
    KeyId,
    RawKey,
    RewrapKeyResult,
    SignatureFormat,
    SignCertificateResult,
    SignDataResult,
    StreamResult,
    TraceContext,
    UnwrapBatchResult,
    UnwrapKeyResult,
    UnwrappedKey,
    VerifyDataResult,
    WrapKeyResult,
    WrappedKey,
)
from cryptobroker._session_results import InitSessionResult, OpenRequestResult, SealReplyResult
from cryptobroker._settings import DEFAULT_RETRY_BUDGET, DEFAULT_SOCKET, SOCKET_VARIABLE
from cryptobroker._streams import Readable
from cryptobroker._thread_streams import CipherStream, Source

__all__ = [
    "DEFAULT_RETRY_BUDGET",
    "DEFAULT_SOCKET",
    "SOCKET_VARIABLE",
    "AbortedError",
    "AsyncCipherStream",
    "AsyncClient",
    "AsyncReadable",
    "AsyncSource",
    "CanceledError",
    "CipherStream",
    "Client",
    "ClientClosedError",
    "Code",
    "CryptoBrokerError",
    "Data",
    "DeadlineExceededError",
    "DecryptDataResult",
    "Deprecation",
    "EncryptDataResult",
    "GenerateDataKeyResult",
    "GetPublicKeyResult",
    "HashDataResult",
    "Health",
    "InitSessionResult",
    "InternalError",
    "InvalidArgumentError",
    "Key",
    "KeyId",
    "NotFoundError",
    "NotServedError",
    "OpenRequestResult",
    "PermissionDeniedError",
    "RawKey",
    "Readable",
    "ResourceExhaustedError",
    "RewrapKeyResult",
    "SealReplyResult",
    "SignCertificateResult",
    "SignDataResult",
    "SignatureFormat",
    "Source",
    "StreamResult",
    "TraceContext",
    "UnavailableError",
    "UnimplementedError",
    "UnwrapBatchResult",
    "UnwrapKeyResult",
    "UnwrappedKey",
    "VerifyDataResult",
    "WrapKeyResult",
    "WrappedKey",
]
