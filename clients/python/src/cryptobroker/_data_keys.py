# SPDX-License-Identifier: Apache-2.0
"""The operations of data keys and public keys. The docstrings also describe the methods of both clients."""

from __future__ import annotations

from collections.abc import Iterable

from cryptobroker._calls import Call
from cryptobroker._errors import code_of, error_of
from cryptobroker._operations import data, operation
from cryptobroker._results import (
    Data,
    Deprecation,
    GenerateDataKeyResult,
    GetPublicKeyResult,
    RewrapKeyResult,
    UnwrapBatchResult,
    UnwrapKeyResult,
    UnwrappedKey,
    WrapKeyResult,
    WrappedKey,
)
from cryptobroker._stubs.cryptobroker.v1 import data_keys_pb2

_GENERATE_DATA_KEY = operation("GenerateDataKey", data_keys_pb2.GenerateDataKeyResponse)
_WRAP_KEY = operation("WrapKey", data_keys_pb2.WrapKeyResponse)
_UNWRAP_KEY = operation("UnwrapKey", data_keys_pb2.UnwrapKeyResponse)
_UNWRAP_BATCH = operation("UnwrapBatch", data_keys_pb2.UnwrapBatchResponse)
_REWRAP_KEY = operation("RewrapKey", data_keys_pb2.RewrapKeyResponse)
_GET_PUBLIC_KEY = operation("GetPublicKey", data_keys_pb2.GetPublicKeyResponse)


def generate_data_key(
    key_id: str,
    *,
    context: Data = b"",
    without_data_key: bool = False,
    profile: str = "",
    timeout: float | None = None,
) -> Call[GenerateDataKeyResult]:
    """Makes a data key and wraps it. If the call is made again, the broker makes another data key.

    Args:
        key_id: the id of the wrapping key. The profile has to list it.
        context: data that the data key is bound to, at most 4 KiB. unwrap_key needs the same context.
        without_data_key: whether only the wrapped key is wanted.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    request = data_keys_pb2.GenerateDataKeyRequest(
        key_id=key_id, context=data("context", context), without_data_key=without_data_key
    )

    def read(reply: data_keys_pb2.GenerateDataKeyResponse, warning: Deprecation | None) -> GenerateDataKeyResult:
        if not reply.wrapped_key or not (reply.data_key or without_data_key):
            raise ValueError("key")
        return GenerateDataKeyResult(reply.data_key or None, reply.wrapped_key, reply.descriptor.algorithm, warning)

    return Call(_GENERATE_DATA_KEY, request, read, profile, timeout)


def wrap_key(
    key_id: str, data_key: Data, *, context: Data = b"", profile: str = "", timeout: float | None = None
) -> Call[WrapKeyResult]:
    """Wraps a data key.

    Args:
        key_id: the id of the wrapping key. The profile has to list it.
        data_key: the key to wrap, 16 to 8192 bytes.
        context: data that the data key is bound to, at most 4 KiB. unwrap_key needs the same context.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    request = data_keys_pb2.WrapKeyRequest(
        key_id=key_id, data_key=data("data_key", data_key), context=data("context", context)
    )
    return Call(_WRAP_KEY, request, _read_wrapped_key, profile, timeout)


def _read_wrapped_key(reply: data_keys_pb2.WrapKeyResponse, warning: Deprecation | None) -> WrapKeyResult:
    if not reply.wrapped_key:
        raise ValueError("wrapped key")
    return WrapKeyResult(reply.wrapped_key, reply.descriptor.algorithm, warning)


def unwrap_key(
    wrapped_key: Data, *, context: Data = b"", profile: str = "", timeout: float | None = None
) -> Call[UnwrapKeyResult]:
    """Returns the data key of a wrapped key. It raises InvalidArgumentError if the wrapped key does not
    authenticate.

    Args:
        wrapped_key: the wrapped key.
        context: the context of the wrapped key, empty if it has none.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    request = data_keys_pb2.UnwrapKeyRequest(
        wrapped_key=data("wrapped_key", wrapped_key), context=data("context", context)
    )
    return Call(_UNWRAP_KEY, request, _read_data_key, profile, timeout)


def _read_data_key(reply: data_keys_pb2.UnwrapKeyResponse, warning: Deprecation | None) -> UnwrapKeyResult:
    if not reply.data_key:
        raise ValueError("data key")
    return UnwrapKeyResult(reply.data_key, reply.descriptor.algorithm, warning)


def unwrap_batch(
    keys: Iterable[WrappedKey], *, profile: str = "", timeout: float | None = None
) -> Call[UnwrapBatchResult]:
    """Returns the data keys of several wrapped keys. It raises no error if some of them, or all, could not be
    unwrapped. The client does not try these again.

    Args:
        keys: 1 to 32 wrapped keys.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    wrapped = [
        data_keys_pb2.WrappedKey(wrapped_key=data("wrapped_key", key.wrapped_key), context=data("context", key.context))
        for key in keys
    ]

    def read(reply: data_keys_pb2.UnwrapBatchResponse, warning: Deprecation | None) -> UnwrapBatchResult:
        if len(reply.results) != len(wrapped):
            raise ValueError("result for each key")
        return UnwrapBatchResult(tuple(_unwrapped(call, result) for result in reply.results), warning)

    call = Call(_UNWRAP_BATCH, data_keys_pb2.UnwrapBatchRequest(keys=wrapped), read, profile, timeout)
    return call


def _unwrapped(call: Call[UnwrapBatchResult], result: data_keys_pb2.UnwrapResult) -> UnwrappedKey:
    if not result.code:
        if not result.data_key:
            raise ValueError("data key or error for each wrapped key")
        return UnwrappedKey(result.data_key)
    error = error_of(code_of(result.code), call.operation.name, call.profile, result.message)
    return UnwrappedKey(None, error)


def rewrap_key(
    wrapped_key: Data,
    *,
    context: Data = b"",
    key_id: str = "",
    profile: str = "",
    timeout: float | None = None,
) -> Call[RewrapKeyResult]:
    """Wraps a wrapped key again. The data key stays in the broker.

    Args:
        wrapped_key: the wrapped key.
        context: its context, which the new wrapped key has as well.
        key_id: the id of the new wrapping key. It is empty for the newest version of the same key.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    request = data_keys_pb2.RewrapKeyRequest(
        wrapped_key=data("wrapped_key", wrapped_key), context=data("context", context), key_id=key_id
    )
    return Call(_REWRAP_KEY, request, _read_rewrapped_key, profile, timeout)


def _read_rewrapped_key(reply: data_keys_pb2.RewrapKeyResponse, warning: Deprecation | None) -> RewrapKeyResult:
    if not reply.wrapped_key:
        raise ValueError("wrapped key")
    return RewrapKeyResult(reply.wrapped_key, reply.unchanged, reply.descriptor.algorithm, warning)


def get_public_key(key_id: str, *, profile: str = "", timeout: float | None = None) -> Call[GetPublicKeyResult]:
    """Returns the public key of a key pair.

    Args:
        key_id: the id of the key pair. The profile has to list it.
        profile: the name of the profile. The default is the profile of the client.
        timeout: the time for the call with all its tries, in seconds.
    """
    request = data_keys_pb2.GetPublicKeyRequest(key_id=key_id)
    return Call(_GET_PUBLIC_KEY, request, _read_public_key, profile, timeout)


def _read_public_key(reply: data_keys_pb2.GetPublicKeyResponse, warning: Deprecation | None) -> GetPublicKeyResult:
    if not reply.der:
        raise ValueError("public key")
    return GetPublicKeyResult(reply.der, reply.pem, reply.version, warning)
