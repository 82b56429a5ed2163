# SPDX-License-Identifier: Apache-2.0
from cryptobroker._stubs.cryptobroker.v1 import data_keys_pb2 as _data_keys_pb2
from cryptobroker._stubs.cryptobroker.v1 import encrypt_data_pb2 as _encrypt_data_pb2
from cryptobroker._stubs.cryptobroker.v1 import metadata_pb2 as _metadata_pb2
from cryptobroker._stubs.cryptobroker.v1 import sign_certificate_pb2 as _sign_certificate_pb2
from cryptobroker._stubs.cryptobroker.v1 import sign_data_pb2 as _sign_data_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HashOutputFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HASH_OUTPUT_FORMAT_UNSPECIFIED: _ClassVar[HashOutputFormat]
    HASH_OUTPUT_FORMAT_HEX: _ClassVar[HashOutputFormat]
    HASH_OUTPUT_FORMAT_RAW: _ClassVar[HashOutputFormat]
HASH_OUTPUT_FORMAT_UNSPECIFIED: HashOutputFormat
HASH_OUTPUT_FORMAT_HEX: HashOutputFormat
HASH_OUTPUT_FORMAT_RAW: HashOutputFormat

class HashDataRequest(_message.Message):
    __slots__ = ("profile", "input", "metadata", "output_format")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FORMAT_FIELD_NUMBER: _ClassVar[int]
    profile: str
    input: bytes
    metadata: _metadata_pb2.Metadata
    output_format: HashOutputFormat
    def __init__(self, profile: _Optional[str] = ..., input: _Optional[bytes] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., output_format: _Optional[_Union[HashOutputFormat, str]] = ...) -> None: ...

class HashDataResponse(_message.Message):
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
