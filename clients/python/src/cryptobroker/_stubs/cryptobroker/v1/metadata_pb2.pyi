# SPDX-License-Identifier: Apache-2.0
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TraceContext(_message.Message):
    __slots__ = ("trace_id", "span_id", "trace_flags", "trace_state", "correlation_id")
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    SPAN_ID_FIELD_NUMBER: _ClassVar[int]
    TRACE_FLAGS_FIELD_NUMBER: _ClassVar[int]
    TRACE_STATE_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    trace_id: str
    span_id: str
    trace_flags: str
    trace_state: str
    correlation_id: str
    def __init__(self, trace_id: _Optional[str] = ..., span_id: _Optional[str] = ..., trace_flags: _Optional[str] = ..., trace_state: _Optional[str] = ..., correlation_id: _Optional[str] = ...) -> None: ...

class Metadata(_message.Message):
    __slots__ = ("id", "deprecation", "trace_context")
    ID_FIELD_NUMBER: _ClassVar[int]
    DEPRECATION_FIELD_NUMBER: _ClassVar[int]
    TRACE_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    id: str
    deprecation: DeprecationWarning
    trace_context: TraceContext
    def __init__(self, id: _Optional[str] = ..., deprecation: _Optional[_Union[DeprecationWarning, _Mapping]] = ..., trace_context: _Optional[_Union[TraceContext, _Mapping]] = ...) -> None: ...

class DeprecationWarning(_message.Message):
    __slots__ = ("profile", "replaced_by", "deprecated_since", "remove_after", "reason")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    REPLACED_BY_FIELD_NUMBER: _ClassVar[int]
    DEPRECATED_SINCE_FIELD_NUMBER: _ClassVar[int]
    REMOVE_AFTER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    profile: str
    replaced_by: str
    deprecated_since: str
    remove_after: str
    reason: str
    def __init__(self, profile: _Optional[str] = ..., replaced_by: _Optional[str] = ..., deprecated_since: _Optional[str] = ..., remove_after: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class CryptoDescriptor(_message.Message):
    __slots__ = ("profile", "operation", "algorithm")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    profile: str
    operation: str
    algorithm: str
    def __init__(self, profile: _Optional[str] = ..., operation: _Optional[str] = ..., algorithm: _Optional[str] = ...) -> None: ...
