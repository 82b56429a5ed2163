# SPDX-License-Identifier: Apache-2.0
from cryptobroker._stubs.cryptobroker.v1 import metadata_pb2 as _metadata_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class InitSessionRequest(_message.Message):
    __slots__ = ("profile", "key_agreement", "client_public_key", "ttl_sec", "nonce", "timestamp", "client_id", "metadata")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    KEY_AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    CLIENT_PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    TTL_SEC_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    profile: str
    key_agreement: str
    client_public_key: str
    ttl_sec: int
    nonce: str
    timestamp: str
    client_id: str
    metadata: _metadata_pb2.Metadata
    def __init__(self, profile: _Optional[str] = ..., key_agreement: _Optional[str] = ..., client_public_key: _Optional[str] = ..., ttl_sec: _Optional[int] = ..., nonce: _Optional[str] = ..., timestamp: _Optional[str] = ..., client_id: _Optional[str] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class InitSessionResponse(_message.Message):
    __slots__ = ("metadata", "session_id", "server_public_key", "enc_alg", "expires_in_sec", "descriptor", "signature", "signature_algorithm")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SERVER_PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    ENC_ALG_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_IN_SEC_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    metadata: _metadata_pb2.Metadata
    session_id: str
    server_public_key: str
    enc_alg: str
    expires_in_sec: int
    descriptor: _metadata_pb2.CryptoDescriptor
    signature: str
    signature_algorithm: str
    def __init__(self, metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., session_id: _Optional[str] = ..., server_public_key: _Optional[str] = ..., enc_alg: _Optional[str] = ..., expires_in_sec: _Optional[int] = ..., descriptor: _Optional[_Union[_metadata_pb2.CryptoDescriptor, _Mapping]] = ..., signature: _Optional[str] = ..., signature_algorithm: _Optional[str] = ...) -> None: ...

class OpenRequestRequest(_message.Message):
    __slots__ = ("profile", "method", "path", "kid", "enc_alg", "iv", "tag", "aad", "nonce", "timestamp", "idempotency_key", "client_id", "body", "metadata", "sequence")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    KID_FIELD_NUMBER: _ClassVar[int]
    ENC_ALG_FIELD_NUMBER: _ClassVar[int]
    IV_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    AAD_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    profile: str
    method: str
    path: str
    kid: str
    enc_alg: str
    iv: str
    tag: str
    aad: str
    nonce: str
    timestamp: str
    idempotency_key: str
    client_id: str
    body: bytes
    metadata: _metadata_pb2.Metadata
    sequence: str
    def __init__(self, profile: _Optional[str] = ..., method: _Optional[str] = ..., path: _Optional[str] = ..., kid: _Optional[str] = ..., enc_alg: _Optional[str] = ..., iv: _Optional[str] = ..., tag: _Optional[str] = ..., aad: _Optional[str] = ..., nonce: _Optional[str] = ..., timestamp: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., client_id: _Optional[str] = ..., body: _Optional[bytes] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., sequence: _Optional[str] = ...) -> None: ...

class OpenRequestResponse(_message.Message):
    __slots__ = ("metadata", "plaintext", "session_id", "path", "client_path", "client_id", "descriptor", "sequence")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    PLAINTEXT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    CLIENT_PATH_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    metadata: _metadata_pb2.Metadata
    plaintext: bytes
    session_id: str
    path: str
    client_path: str
    client_id: str
    descriptor: _metadata_pb2.CryptoDescriptor
    sequence: str
    def __init__(self, metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., plaintext: _Optional[bytes] = ..., session_id: _Optional[str] = ..., path: _Optional[str] = ..., client_path: _Optional[str] = ..., client_id: _Optional[str] = ..., descriptor: _Optional[_Union[_metadata_pb2.CryptoDescriptor, _Mapping]] = ..., sequence: _Optional[str] = ...) -> None: ...

class SealReplyRequest(_message.Message):
    __slots__ = ("profile", "session_id", "client_path", "plaintext", "metadata", "sequence")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_PATH_FIELD_NUMBER: _ClassVar[int]
    PLAINTEXT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    profile: str
    session_id: str
    client_path: str
    plaintext: bytes
    metadata: _metadata_pb2.Metadata
    sequence: str
    def __init__(self, profile: _Optional[str] = ..., session_id: _Optional[str] = ..., client_path: _Optional[str] = ..., plaintext: _Optional[bytes] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., sequence: _Optional[str] = ...) -> None: ...

class SealReplyResponse(_message.Message):
    __slots__ = ("metadata", "kid", "enc_alg", "iv", "tag", "aad", "nonce", "timestamp", "idempotency_key", "client_id", "body", "descriptor", "sequence")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    KID_FIELD_NUMBER: _ClassVar[int]
    ENC_ALG_FIELD_NUMBER: _ClassVar[int]
    IV_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    AAD_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    metadata: _metadata_pb2.Metadata
    kid: str
    enc_alg: str
    iv: str
    tag: str
    aad: str
    nonce: str
    timestamp: str
    idempotency_key: str
    client_id: str
    body: bytes
    descriptor: _metadata_pb2.CryptoDescriptor
    sequence: str
    def __init__(self, metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., kid: _Optional[str] = ..., enc_alg: _Optional[str] = ..., iv: _Optional[str] = ..., tag: _Optional[str] = ..., aad: _Optional[str] = ..., nonce: _Optional[str] = ..., timestamp: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., client_id: _Optional[str] = ..., body: _Optional[bytes] = ..., descriptor: _Optional[_Union[_metadata_pb2.CryptoDescriptor, _Mapping]] = ..., sequence: _Optional[str] = ...) -> None: ...

class CloseSessionRequest(_message.Message):
    __slots__ = ("profile", "session_id", "metadata")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    profile: str
    session_id: str
    metadata: _metadata_pb2.Metadata
    def __init__(self, profile: _Optional[str] = ..., session_id: _Optional[str] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class CloseSessionResponse(_message.Message):
    __slots__ = ("metadata",)
    METADATA_FIELD_NUMBER: _ClassVar[int]
    metadata: _metadata_pb2.Metadata
    def __init__(self, metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class RekeySessionRequest(_message.Message):
    __slots__ = ("profile", "method", "path", "kid", "enc_alg", "timestamp", "sequence", "body", "metadata")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    KID_FIELD_NUMBER: _ClassVar[int]
    ENC_ALG_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    profile: str
    method: str
    path: str
    kid: str
    enc_alg: str
    timestamp: str
    sequence: str
    body: bytes
    metadata: _metadata_pb2.Metadata
    def __init__(self, profile: _Optional[str] = ..., method: _Optional[str] = ..., path: _Optional[str] = ..., kid: _Optional[str] = ..., enc_alg: _Optional[str] = ..., timestamp: _Optional[str] = ..., sequence: _Optional[str] = ..., body: _Optional[bytes] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class RekeySessionResponse(_message.Message):
    __slots__ = ("metadata", "session_id", "path", "client_path", "sequence", "descriptor")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    CLIENT_PATH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    metadata: _metadata_pb2.Metadata
    session_id: str
    path: str
    client_path: str
    sequence: str
    descriptor: _metadata_pb2.CryptoDescriptor
    def __init__(self, metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., session_id: _Optional[str] = ..., path: _Optional[str] = ..., client_path: _Optional[str] = ..., sequence: _Optional[str] = ..., descriptor: _Optional[_Union[_metadata_pb2.CryptoDescriptor, _Mapping]] = ...) -> None: ...
