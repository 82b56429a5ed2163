# SPDX-License-Identifier: Apache-2.0
from cryptobroker._stubs.cryptobroker.v1 import key_source_pb2 as _key_source_pb2
from cryptobroker._stubs.cryptobroker.v1 import metadata_pb2 as _metadata_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SignatureFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SIGNATURE_FORMAT_UNSPECIFIED: _ClassVar[SignatureFormat]
    SIGNATURE_FORMAT_RAW: _ClassVar[SignatureFormat]
    SIGNATURE_FORMAT_DER: _ClassVar[SignatureFormat]
    SIGNATURE_FORMAT_PEM: _ClassVar[SignatureFormat]
    SIGNATURE_FORMAT_CMS: _ClassVar[SignatureFormat]
SIGNATURE_FORMAT_UNSPECIFIED: SignatureFormat
SIGNATURE_FORMAT_RAW: SignatureFormat
SIGNATURE_FORMAT_DER: SignatureFormat
SIGNATURE_FORMAT_PEM: SignatureFormat
SIGNATURE_FORMAT_CMS: SignatureFormat

class SignDataRequest(_message.Message):
    __slots__ = ("profile", "key_source", "input", "signature_format", "metadata")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    KEY_SOURCE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FORMAT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    profile: str
    key_source: _key_source_pb2.SignKeySource
    input: bytes
    signature_format: SignatureFormat
    metadata: _metadata_pb2.Metadata
    def __init__(self, profile: _Optional[str] = ..., key_source: _Optional[_Union[_key_source_pb2.SignKeySource, _Mapping]] = ..., input: _Optional[bytes] = ..., signature_format: _Optional[_Union[SignatureFormat, str]] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class SignDataResponse(_message.Message):
    __slots__ = ("signature", "descriptor", "metadata")
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    signature: bytes
    descriptor: _metadata_pb2.CryptoDescriptor
    metadata: _metadata_pb2.Metadata
    def __init__(self, signature: _Optional[bytes] = ..., descriptor: _Optional[_Union[_metadata_pb2.CryptoDescriptor, _Mapping]] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class VerifyDataRequest(_message.Message):
    __slots__ = ("profile", "key_source", "input", "signature", "signature_format", "metadata")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    KEY_SOURCE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FORMAT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    profile: str
    key_source: _key_source_pb2.SignKeySource
    input: bytes
    signature: bytes
    signature_format: SignatureFormat
    metadata: _metadata_pb2.Metadata
    def __init__(self, profile: _Optional[str] = ..., key_source: _Optional[_Union[_key_source_pb2.SignKeySource, _Mapping]] = ..., input: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., signature_format: _Optional[_Union[SignatureFormat, str]] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...

class VerifyDataResponse(_message.Message):
    __slots__ = ("valid", "metadata")
    VALID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    valid: bool
    metadata: _metadata_pb2.Metadata
    def __init__(self, valid: bool = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ...) -> None: ...
