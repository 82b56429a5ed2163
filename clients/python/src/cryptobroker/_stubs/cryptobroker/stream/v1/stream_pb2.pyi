# SPDX-License-Identifier: Apache-2.0
from cryptobroker._stubs.cryptobroker.v1 import data_keys_pb2 as _data_keys_pb2
from cryptobroker._stubs.cryptobroker.v1 import encrypt_data_pb2 as _encrypt_data_pb2
from cryptobroker._stubs.cryptobroker.v1 import metadata_pb2 as _metadata_pb2
from cryptobroker._stubs.cryptobroker.v1 import service_pb2 as _service_pb2
from cryptobroker._stubs.cryptobroker.v1 import sign_certificate_pb2 as _sign_certificate_pb2
from cryptobroker._stubs.cryptobroker.v1 import sign_data_pb2 as _sign_data_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HashStreamRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: HashStreamStart
    chunk: bytes
    def __init__(self, start: _Optional[_Union[HashStreamStart, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class HashStreamStart(_message.Message):
    __slots__ = ("profile", "metadata", "output_format")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FORMAT_FIELD_NUMBER: _ClassVar[int]
    profile: str
    metadata: _metadata_pb2.Metadata
    output_format: _service_pb2.HashOutputFormat
    def __init__(self, profile: _Optional[str] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., output_format: _Optional[_Union[_service_pb2.HashOutputFormat, str]] = ...) -> None: ...

class HashStreamResponse(_message.Message):
    __slots__ = ("metadata", "hash_value_hex", "hash_value_raw", "descriptor")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    HASH_VALUE_HEX_FIELD_NUMBER: _ClassVar[int]
    HASH_VALUE_RAW_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    metadata: _metadata_pb2.Metadata
    hash_value_hex: str
    hash_value_raw: bytes
    descriptor: _metadata_pb2.CryptoDescriptor
    def __init__(self, metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., hash_value_hex: _Optional[str] = ..., hash_value_raw: _Optional[bytes] = ..., descriptor: _Optional[_Union[_metadata_pb2.CryptoDescriptor, _Mapping]] = ...) -> None: ...

class EncryptStreamRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: EncryptStreamStart
    chunk: bytes
    def __init__(self, start: _Optional[_Union[EncryptStreamStart, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class EncryptStreamStart(_message.Message):
    __slots__ = ("profile", "key_id", "metadata", "context")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    profile: str
    key_id: str
    metadata: _metadata_pb2.Metadata
    context: bytes
    def __init__(self, profile: _Optional[str] = ..., key_id: _Optional[str] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., context: _Optional[bytes] = ...) -> None: ...

class EncryptStreamResponse(_message.Message):
    __slots__ = ("end", "chunk")
    END_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    end: StreamEnd
    chunk: bytes
    def __init__(self, end: _Optional[_Union[StreamEnd, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class DecryptStreamRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: DecryptStreamStart
    chunk: bytes
    def __init__(self, start: _Optional[_Union[DecryptStreamStart, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class DecryptStreamStart(_message.Message):
    __slots__ = ("profile", "metadata", "context")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    profile: str
    metadata: _metadata_pb2.Metadata
    context: bytes
    def __init__(self, profile: _Optional[str] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., context: _Optional[bytes] = ...) -> None: ...

class DecryptStreamResponse(_message.Message):
    __slots__ = ("end", "chunk")
    END_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    end: StreamEnd
    chunk: bytes
    def __init__(self, end: _Optional[_Union[StreamEnd, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class StreamEnd(_message.Message):
    __slots__ = ("metadata", "descriptor")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    metadata: _metadata_pb2.Metadata
    descriptor: _metadata_pb2.CryptoDescriptor
    def __init__(self, metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., descriptor: _Optional[_Union[_metadata_pb2.CryptoDescriptor, _Mapping]] = ...) -> None: ...

class ExchangeRequest(_message.Message):
    __slots__ = ("calls", "given_up")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    GIVEN_UP_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedCompositeFieldContainer[Call]
    given_up: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, calls: _Optional[_Iterable[_Union[Call, _Mapping]]] = ..., given_up: _Optional[_Iterable[int]] = ...) -> None: ...

class Call(_message.Message):
    __slots__ = ("id", "timeout_millis", "hash_data", "sign_certificate", "encrypt_data", "decrypt_data", "sign_data", "verify_data", "generate_data_key", "wrap_key", "unwrap_key", "unwrap_batch", "rewrap_key", "get_public_key")
    ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MILLIS_FIELD_NUMBER: _ClassVar[int]
    HASH_DATA_FIELD_NUMBER: _ClassVar[int]
    SIGN_CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPT_DATA_FIELD_NUMBER: _ClassVar[int]
    DECRYPT_DATA_FIELD_NUMBER: _ClassVar[int]
    SIGN_DATA_FIELD_NUMBER: _ClassVar[int]
    VERIFY_DATA_FIELD_NUMBER: _ClassVar[int]
    GENERATE_DATA_KEY_FIELD_NUMBER: _ClassVar[int]
    WRAP_KEY_FIELD_NUMBER: _ClassVar[int]
    UNWRAP_KEY_FIELD_NUMBER: _ClassVar[int]
    UNWRAP_BATCH_FIELD_NUMBER: _ClassVar[int]
    REWRAP_KEY_FIELD_NUMBER: _ClassVar[int]
    GET_PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    id: int
    timeout_millis: int
    hash_data: _service_pb2.HashDataRequest
    sign_certificate: _sign_certificate_pb2.SignCertificateRequest
    encrypt_data: _encrypt_data_pb2.EncryptDataRequest
    decrypt_data: _encrypt_data_pb2.DecryptDataRequest
    sign_data: _sign_data_pb2.SignDataRequest
    verify_data: _sign_data_pb2.VerifyDataRequest
    generate_data_key: _data_keys_pb2.GenerateDataKeyRequest
    wrap_key: _data_keys_pb2.WrapKeyRequest
    unwrap_key: _data_keys_pb2.UnwrapKeyRequest
    unwrap_batch: _data_keys_pb2.UnwrapBatchRequest
    rewrap_key: _data_keys_pb2.RewrapKeyRequest
    get_public_key: _data_keys_pb2.GetPublicKeyRequest
    def __init__(self, id: _Optional[int] = ..., timeout_millis: _Optional[int] = ..., hash_data: _Optional[_Union[_service_pb2.HashDataRequest, _Mapping]] = ..., sign_certificate: _Optional[_Union[_sign_certificate_pb2.SignCertificateRequest, _Mapping]] = ..., encrypt_data: _Optional[_Union[_encrypt_data_pb2.EncryptDataRequest, _Mapping]] = ..., decrypt_data: _Optional[_Union[_encrypt_data_pb2.DecryptDataRequest, _Mapping]] = ..., sign_data: _Optional[_Union[_sign_data_pb2.SignDataRequest, _Mapping]] = ..., verify_data: _Optional[_Union[_sign_data_pb2.VerifyDataRequest, _Mapping]] = ..., generate_data_key: _Optional[_Union[_data_keys_pb2.GenerateDataKeyRequest, _Mapping]] = ..., wrap_key: _Optional[_Union[_data_keys_pb2.WrapKeyRequest, _Mapping]] = ..., unwrap_key: _Optional[_Union[_data_keys_pb2.UnwrapKeyRequest, _Mapping]] = ..., unwrap_batch: _Optional[_Union[_data_keys_pb2.UnwrapBatchRequest, _Mapping]] = ..., rewrap_key: _Optional[_Union[_data_keys_pb2.RewrapKeyRequest, _Mapping]] = ..., get_public_key: _Optional[_Union[_data_keys_pb2.GetPublicKeyRequest, _Mapping]] = ...) -> None: ...

class ExchangeResponse(_message.Message):
    __slots__ = ("replies", "go_away")
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    GO_AWAY_FIELD_NUMBER: _ClassVar[int]
    replies: _containers.RepeatedCompositeFieldContainer[Reply]
    go_away: GoAway
    def __init__(self, replies: _Optional[_Iterable[_Union[Reply, _Mapping]]] = ..., go_away: _Optional[_Union[GoAway, _Mapping]] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ("id", "status", "hash_data", "sign_certificate", "encrypt_data", "decrypt_data", "sign_data", "verify_data", "generate_data_key", "wrap_key", "unwrap_key", "unwrap_batch", "rewrap_key", "get_public_key")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    HASH_DATA_FIELD_NUMBER: _ClassVar[int]
    SIGN_CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPT_DATA_FIELD_NUMBER: _ClassVar[int]
    DECRYPT_DATA_FIELD_NUMBER: _ClassVar[int]
    SIGN_DATA_FIELD_NUMBER: _ClassVar[int]
    VERIFY_DATA_FIELD_NUMBER: _ClassVar[int]
    GENERATE_DATA_KEY_FIELD_NUMBER: _ClassVar[int]
    WRAP_KEY_FIELD_NUMBER: _ClassVar[int]
    UNWRAP_KEY_FIELD_NUMBER: _ClassVar[int]
    UNWRAP_BATCH_FIELD_NUMBER: _ClassVar[int]
    REWRAP_KEY_FIELD_NUMBER: _ClassVar[int]
    GET_PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    id: int
    status: Status
    hash_data: _service_pb2.HashDataResponse
    sign_certificate: _sign_certificate_pb2.SignCertificateResponse
    encrypt_data: _encrypt_data_pb2.EncryptDataResponse
    decrypt_data: _encrypt_data_pb2.DecryptDataResponse
    sign_data: _sign_data_pb2.SignDataResponse
    verify_data: _sign_data_pb2.VerifyDataResponse
    generate_data_key: _data_keys_pb2.GenerateDataKeyResponse
    wrap_key: _data_keys_pb2.WrapKeyResponse
    unwrap_key: _data_keys_pb2.UnwrapKeyResponse
    unwrap_batch: _data_keys_pb2.UnwrapBatchResponse
    rewrap_key: _data_keys_pb2.RewrapKeyResponse
    get_public_key: _data_keys_pb2.GetPublicKeyResponse
    def __init__(self, id: _Optional[int] = ..., status: _Optional[_Union[Status, _Mapping]] = ..., hash_data: _Optional[_Union[_service_pb2.HashDataResponse, _Mapping]] = ..., sign_certificate: _Optional[_Union[_sign_certificate_pb2.SignCertificateResponse, _Mapping]] = ..., encrypt_data: _Optional[_Union[_encrypt_data_pb2.EncryptDataResponse, _Mapping]] = ..., decrypt_data: _Optional[_Union[_encrypt_data_pb2.DecryptDataResponse, _Mapping]] = ..., sign_data: _Optional[_Union[_sign_data_pb2.SignDataResponse, _Mapping]] = ..., verify_data: _Optional[_Union[_sign_data_pb2.VerifyDataResponse, _Mapping]] = ..., generate_data_key: _Optional[_Union[_data_keys_pb2.GenerateDataKeyResponse, _Mapping]] = ..., wrap_key: _Optional[_Union[_data_keys_pb2.WrapKeyResponse, _Mapping]] = ..., unwrap_key: _Optional[_Union[_data_keys_pb2.UnwrapKeyResponse, _Mapping]] = ..., unwrap_batch: _Optional[_Union[_data_keys_pb2.UnwrapBatchResponse, _Mapping]] = ..., rewrap_key: _Optional[_Union[_data_keys_pb2.RewrapKeyResponse, _Mapping]] = ..., get_public_key: _Optional[_Union[_data_keys_pb2.GetPublicKeyResponse, _Mapping]] = ...) -> None: ...

class Status(_message.Message):
    __slots__ = ("code", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class GoAway(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: str
    def __init__(self, message: _Optional[str] = ...) -> None: ...
