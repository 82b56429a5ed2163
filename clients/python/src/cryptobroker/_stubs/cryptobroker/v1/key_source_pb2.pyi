# SPDX-License-Identifier: Apache-2.0
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class KeySource(_message.Message):
    __slots__ = ("key_id", "raw_key")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    RAW_KEY_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    raw_key: bytes
    def __init__(self, key_id: _Optional[str] = ..., raw_key: _Optional[bytes] = ...) -> None: ...

class ComponentKeys(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[KeySource]
    def __init__(self, keys: _Optional[_Iterable[_Union[KeySource, _Mapping]]] = ...) -> None: ...

class SignKeySource(_message.Message):
    __slots__ = ("single", "component_keys")
    SINGLE_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_KEYS_FIELD_NUMBER: _ClassVar[int]
    single: KeySource
    component_keys: ComponentKeys
    def __init__(self, single: _Optional[_Union[KeySource, _Mapping]] = ..., component_keys: _Optional[_Union[ComponentKeys, _Mapping]] = ...) -> None: ...
