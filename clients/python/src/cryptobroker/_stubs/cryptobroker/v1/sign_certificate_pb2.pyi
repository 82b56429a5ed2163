# SPDX-License-Identifier: Apache-2.0
from cryptobroker._stubs.cryptobroker.v1 import metadata_pb2 as _metadata_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SignOutputFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SIGN_OUTPUT_FORMAT_UNSPECIFIED: _ClassVar[SignOutputFormat]
    SIGN_OUTPUT_FORMAT_DER: _ClassVar[SignOutputFormat]
    SIGN_OUTPUT_FORMAT_PEM: _ClassVar[SignOutputFormat]
SIGN_OUTPUT_FORMAT_UNSPECIFIED: SignOutputFormat
SIGN_OUTPUT_FORMAT_DER: SignOutputFormat
SIGN_OUTPUT_FORMAT_PEM: SignOutputFormat

class SignCertificateRequest(_message.Message):
    __slots__ = ("profile", "csr", "ca_private_key", "ca_cert", "metadata", "valid_not_before", "valid_not_after", "subject", "crl_distribution_points", "output_format")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    CSR_FIELD_NUMBER: _ClassVar[int]
    CA_PRIVATE_KEY_FIELD_NUMBER: _ClassVar[int]
    CA_CERT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    VALID_NOT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    VALID_NOT_AFTER_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    CRL_DISTRIBUTION_POINTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FORMAT_FIELD_NUMBER: _ClassVar[int]
    profile: str
    csr: str
    ca_private_key: str
    ca_cert: str
    metadata: _metadata_pb2.Metadata
    valid_not_before: int
    valid_not_after: int
    subject: str
    crl_distribution_points: _containers.RepeatedScalarFieldContainer[str]
    output_format: SignOutputFormat
    def __init__(self, profile: _Optional[str] = ..., csr: _Optional[str] = ..., ca_private_key: _Optional[str] = ..., ca_cert: _Optional[str] = ..., metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., valid_not_before: _Optional[int] = ..., valid_not_after: _Optional[int] = ..., subject: _Optional[str] = ..., crl_distribution_points: _Optional[_Iterable[str]] = ..., output_format: _Optional[_Union[SignOutputFormat, str]] = ...) -> None: ...

class SignCertificateResponse(_message.Message):
    __slots__ = ("metadata", "pem", "der", "descriptor")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    PEM_FIELD_NUMBER: _ClassVar[int]
    DER_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    metadata: _metadata_pb2.Metadata
    pem: str
    der: bytes
    descriptor: _metadata_pb2.CryptoDescriptor
    def __init__(self, metadata: _Optional[_Union[_metadata_pb2.Metadata, _Mapping]] = ..., pem: _Optional[str] = ..., der: _Optional[bytes] = ..., descriptor: _Optional[_Union[_metadata_pb2.CryptoDescriptor, _Mapping]] = ...) -> None: ...
