# SPDX-License-Identifier: Apache-2.0
from cryptobroker._stubs.cryptobroker.v1 import key_source_pb2 as _key_source_pb2
from cryptobroker._stubs.cryptobroker.v1 import metadata_pb2 as _metadata_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EncryptMetadata(_message.Message):
    __slots__ = ("nonce", "aad")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    AAD_FIELD_NUMBER: _ClassVar[int]
    nonce: bytes
    aad: bytes
    def __init__(self, nonce: _Optional[bytes] = ..., aad: _Optional[bytes] = ...) -> None: ...

class CipherMetadata(_message.Message):
    __slots__ = ("key_id", "nonce", "aad", "tag")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    AAD_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    nonce: bytes
    aad: bytes
    tag: bytes
    def __init__(self, key_id: _Optional[str] = ..., nonce: _Optional[bytes] = ..., aad: _Optional[bytes] = ..., tag: _Optional[bytes] = ...) -> None: ...

class DecryptMetadata(_message.Message):
    __slots__ = ("nonce", "aad", "tag")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    AAD_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    nonce: bytes
    aad: bytes
    tag: bytes
    def __init__(self, nonce: _Optional[bytes] = ..., aad: _Optional[bytes] = ..., tag: _Optional[bytes] = ...) -> None: ...

class EncryptDataRequest(_message.Message):
    __slots__ = ("profile", "key_source", "plaintext", "encrypt_metadata", "metadata")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    KEY_SOURCE_FIELD_NUMBER: _ClassVar[int]
    PLAINTEXT_FIELD_NUMBER: _ClassVar[int]
    ENCRYPT_METADATA_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    profile: str
    key_source: _key_source_pb2.KeySource
    plaintext: bytes
    encrypt_metadata: EncryptMetadata
    metadata: _metadata_pb2.Metadata
    def __init__(self, profile: _Optional[str] = ..., key_source: _Optional[_Union[_key_source_pb2.KeySource, _Mapping]] = ..., plaintext: _Optional[bytes] = ..., encrypt_metadata: _Optional[_Union[EncryptMetadata, _Mapping]] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class EncryptDataResponse(_message.Message):
    __slots__ = ("ciphertext", "cipher_metadata", "metadata", "descriptor")
    CIPHERTEXT_FIELD_NUMBER: _ClassVar[int]
    CIPHER_METADATA_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    ciphertext: bytes
    cipher_metadata: CipherMetadata
    metadata: _metadata_pb2.Metadata
    descriptor: _metadata_pb2.CryptoDescriptor
    def __init__(self, ciphertext: _Optional[bytes] = ..., cipher_metadata: _Optional[_Union[CipherMetadata, _Mapping]] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., descriptor: _Optional[_Union[_metadata_pb2.CryptoDescriptor, _Mapping]] = ...) -> None: ...

class DecryptDataRequest(_message.Message):
    __slots__ = ("profile", "key_source", "ciphertext", "decrypt_metadata", "metadata")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    KEY_SOURCE_FIELD_NUMBER: _ClassVar[int]
    CIPHERTEXT_FIELD_NUMBER: _ClassVar[int]
    DECRYPT_METADATA_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    profile: str
    key_source: _key_source_pb2.KeySource
    ciphertext: bytes
    decrypt_metadata: DecryptMetadata
    metadata: _metadata_pb2.Metadata
    def __init__(self, profile: _Optional[str] = ..., key_source: _Optional[_Union[_key_source_pb2.KeySource, _Mapping]] = ..., ciphertext: _Optional[bytes] = ..., decrypt_metadata: _Optional[_Union[DecryptMetadata, _Mapping]] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class DecryptDataResponse(_message.Message):
    __slots__ = ("plaintext", "metadata")
    PLAINTEXT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    plaintext: bytes
    metadata: _metadata_pb2.Metadata
    def __init__(self, plaintext: _Optional[bytes] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...
