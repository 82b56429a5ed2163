// SPDX-License-Identifier: Apache-2.0

use std::fmt;

/// The kind of an error. The numbers are the numbers of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The call was given up.
    Canceled = 1,
    /// No other code fits.
    Unknown = 2,
    /// The request is not valid, or the broker does not have the profile.
    InvalidArgument = 3,
    /// The call did not end within its time.
    DeadlineExceeded = 4,
    /// The broker has no key with the id.
    NotFound = 5,
    /// The profile does not allow the caller, or the key.
    PermissionDenied = 7,
    /// The broker has too much to do. The client tries again.
    ResourceExhausted = 8,
    /// The profile does not offer the operation, or a key cannot be used.
    NotServed = 9,
    /// The call conflicted with another call. The client tries again.
    Aborted = 10,
    /// The version of the broker does not have the operation.
    Unimplemented = 12,
    /// A defect of the broker or of this crate.
    Internal = 13,
    /// The broker, or a key manager that it uses, cannot be reached. The client tries again.
    Unavailable = 14,
}

impl Code {
    /// Returns the name of the code in gRPC, such as "NOT_FOUND".
    pub fn name(self) -> &'static str {
        match self {
            Code::Canceled => "CANCELED",
            Code::Unknown => "UNKNOWN",
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Code::NotFound => "NOT_FOUND",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Code::NotServed => "FAILED_PRECONDITION",
            Code::Aborted => "ABORTED",
            Code::Unimplemented => "UNIMPLEMENTED",
            Code::Internal => "INTERNAL",
            Code::Unavailable => "UNAVAILABLE",
        }
    }

    pub(crate) fn from_number(number: i32) -> Code {
        match number {
            1 => Code::Canceled,
            3 => Code::InvalidArgument,
            4 => Code::DeadlineExceeded,
            5 => Code::NotFound,
            7 => Code::PermissionDenied,
            8 => Code::ResourceExhausted,
            9 => Code::NotServed,
            10 => Code::Aborted,
            12 => Code::Unimplemented,
            13 => Code::Internal,
            14 => Code::Unavailable,
            _ => Code::Unknown,
        }
    }

    /// Reports whether a call that ended with this code may be made again.
    fn transient(self) -> bool {
        matches!(self, Code::Unavailable | Code::ResourceExhausted | Code::Aborted)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error of a call, or of options that are not valid.
#[derive(Debug)]
#[non_exhaustive]
pub struct Error {
    /// The kind of error.
    pub code: Code,
    /// The name of the operation, such as "HashData". It is empty for options.
    pub operation: &'static str,
    /// The name of the profile in the request. It is empty if there is none.
    pub profile: String,
    /// What was found and what was expected. It quotes no secrets.
    pub reason: String,
    /// Whether the client gave up because its time for further tries was spent.
    pub retry_budget_spent: bool,
    source: Option<std::io::Error>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "crypto broker: {}: {}", self.code, self.reason)
    }
}

impl std::error::Error for Error {
    /// Returns the error of the input or output of a stream.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as _)
    }
}

impl Error {
    /// Returns the error of an option.
    pub(crate) fn option(reason: impl Into<String>) -> Error {
        Failure::new(Code::InvalidArgument, reason).into_error("", "")
    }

    pub(crate) fn with_source(mut self, source: std::io::Error) -> Error {
        self.source = Some(source);
        self
    }
}

/// Why a try failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub code: Code,
    pub reason: String,
    /// The call cannot be made again, whatever the code is.
    pub last: bool,
    pub spent: bool,
    pub source: Option<std::io::Error>,
}

impl Failure {
    pub fn new(code: Code, reason: impl Into<String>) -> Failure {
        Failure { code, reason: reason.into(), last: false, spent: false, source: None }
    }

    /// Reports whether the call may be made again.
    pub fn transient(&self) -> bool {
        self.code.transient() && !self.last
    }

    /// Returns the error of the call. Sentences of a broker begin with the operation. Others get it here.
    pub fn into_error(self, operation: &'static str, profile: &str) -> Error {
        let reason = match (self.reason.starts_with(operation), profile) {
            (true, _) => self.reason,
            (false, "") => format!("{operation}: {}", self.reason),
            (false, profile) => format!("{operation} with profile {profile:?}: {}", self.reason),
        };
        let error =
            Error { code: self.code, operation, profile: profile.to_owned(), reason, retry_budget_spent: self.spent, source: None };
        match self.source {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}
