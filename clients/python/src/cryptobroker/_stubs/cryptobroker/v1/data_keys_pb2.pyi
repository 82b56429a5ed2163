# SPDX-License-Identifier: Apache-2.0
from cryptobroker._stubs.cryptobroker.v1 import metadata_pb2 as _metadata_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GenerateDataKeyRequest(_message.Message):
    __slots__ = ("profile", "key_id", "context", "without_data_key", "metadata")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_DATA_KEY_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    profile: str
    key_id: str
    context: bytes
    without_data_key: bool
    metadata: _metadata_pb2.Metadata
    def __init__(self, profile: _Optional[str] = ..., key_id: _Optional[str] = ..., context: _Optional[bytes] = ..., without_data_key: bool = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class GenerateDataKeyResponse(_message.Message):
    __slots__ = ("metadata", "data_key", "wrapped_key", "descriptor")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    DATA_KEY_FIELD_NUMBER: _ClassVar[int]
    WRAPPED_KEY_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    metadata: _metadata_pb2.Metadata
    data_key: bytes
    wrapped_key: bytes
    descriptor: _metadata_pb2.CryptoDescriptor
    def __init__(self, metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., data_key: _Optional[bytes] = ..., wrapped_key: _Optional[bytes] = ..., descriptor: _Optional[_Union[_metadata_pb2.CryptoDescriptor, _Mapping]] = ...) -> None: ...

class WrapKeyRequest(_message.Message):
    __slots__ = ("profile", "key_id", "context", "data_key", "metadata")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_KEY_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    profile: str
    key_id: str
    context: bytes
    data_key: bytes
    metadata: _metadata_pb2.Metadata
    def __init__(self, profile: _Optional[str] = ..., key_id: _Optional[str] = ..., context: _Optional[bytes] = ..., data_key: _Optional[bytes] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class WrapKeyResponse(_message.Message):
    __slots__ = ("metadata", "wrapped_key", "descriptor")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    WRAPPED_KEY_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    metadata: _metadata_pb2.Metadata
    wrapped_key: bytes
    descriptor: _metadata_pb2.CryptoDescriptor
    def __init__(self, metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., wrapped_key: _Optional[bytes] = ..., descriptor: _Optional[_Union[_metadata_pb2.CryptoDescriptor, _Mapping]] = ...) -> None: ...

class UnwrapKeyRequest(_message.Message):
    __slots__ = ("profile", "wrapped_key", "context", "metadata")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    WRAPPED_KEY_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    profile: str
    wrapped_key: bytes
    context: bytes
    metadata: _metadata_pb2.Metadata
    def __init__(self, profile: _Optional[str] = ..., wrapped_key: _Optional[bytes] = ..., context: _Optional[bytes] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class UnwrapKeyResponse(_message.Message):
    __slots__ = ("metadata", "data_key", "descriptor")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    DATA_KEY_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    metadata: _metadata_pb2.Metadata
    data_key: bytes
    descriptor: _metadata_pb2.CryptoDescriptor
    def __init__(self, metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., data_key: _Optional[bytes] = ..., descriptor: _Optional[_Union[_metadata_pb2.CryptoDescriptor, _Mapping]] = ...) -> None: ...

class WrappedKey(_message.Message):
    __slots__ = ("wrapped_key", "context")
    WRAPPED_KEY_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    wrapped_key: bytes
    context: bytes
    def __init__(self, wrapped_key: _Optional[bytes] = ..., context: _Optional[bytes] = ...) -> None: ...

class UnwrapBatchRequest(_message.Message):
    __slots__ = ("profile", "keys", "metadata")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    profile: str
    keys: _containers.RepeatedCompositeFieldContainer[WrappedKey]
    metadata: _metadata_pb2.Metadata
    def __init__(self, profile: _Optional[str] = ..., keys: _Optional[_Iterable[_Union[WrappedKey, _Mapping]]] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class UnwrapResult(_message.Message):
    __slots__ = ("data_key", "code", "message")
    DATA_KEY_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    data_key: bytes
    code: int
    message: str
    def __init__(self, data_key: _Optional[bytes] = ..., code: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class UnwrapBatchResponse(_message.Message):
    __slots__ = ("metadata", "results")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    metadata: _metadata_pb2.Metadata
    results: _containers.RepeatedCompositeFieldContainer[UnwrapResult]
    def __init__(self, metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., results: _Optional[_Iterable[_Union[UnwrapResult, _Mapping]]] = ...) -> None: ...

class RewrapKeyRequest(_message.Message):
    __slots__ = ("profile", "wrapped_key", "context", "key_id", "metadata")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    WRAPPED_KEY_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    profile: str
    wrapped_key: bytes
    context: bytes
    key_id: str
    metadata: _metadata_pb2.Metadata
    def __init__(self, profile: _Optional[str] = ..., wrapped_key: _Optional[bytes] = ..., context: _Optional[bytes] = ..., key_id: _Optional[str] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class RewrapKeyResponse(_message.Message):
    __slots__ = ("metadata", "wrapped_key", "descriptor", "unchanged")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    WRAPPED_KEY_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    metadata: _metadata_pb2.Metadata
    wrapped_key: bytes
    descriptor: _metadata_pb2.CryptoDescriptor
    unchanged: bool
    def __init__(self, metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., wrapped_key: _Optional[bytes] = ..., descriptor: _Optional[_Union[_metadata_pb2.CryptoDescriptor, _Mapping]] = ..., unchanged: bool = ...) -> None: ...

class GetPublicKeyRequest(_message.Message):
    __slots__ = ("profile", "key_id", "metadata")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    profile: str
    key_id: str
    metadata: _metadata_pb2.Metadata
    def __init__(self, profile: _Optional[str] = ..., key_id: _Optional[str] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class GetPublicKeyResponse(_message.Message):
    __slots__ = ("metadata", "der", "pem", "version")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    DER_FIELD_NUMBER: _ClassVar[int]
    PEM_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    metadata: _metadata_pb2.Metadata
    der: bytes
    pem: str
    version: str
    def __init__(self, metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., der: _Optional[bytes] = ..., pem: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...
