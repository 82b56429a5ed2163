// SPDX-License-Identifier: Apache-2.0

use std::fmt;

use crate::{error::Error, wire::v1};

/// The trace that a call belongs to (W3C Trace Context).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceContext {
    /// 32 hexadecimal digits, as in the header traceparent.
    pub trace_id: String,
    /// 16 hexadecimal digits.
    pub span_id: String,
    /// 2 hexadecimal digits.
    pub flags: String,
    /// The value of the header tracestate.
    pub state: String,
    /// An id that the caller chooses, at most 128 characters of printable ASCII. Audit records have it.
    pub correlation_id: String,
}

impl TraceContext {
    /// Returns the context of a trace and of the span that makes the call.
    pub fn new(trace_id: impl Into<String>, span_id: impl Into<String>) -> Self {
        TraceContext { trace_id: trace_id.into(), span_id: span_id.into(), ..Default::default() }
    }
}

impl From<TraceContext> for v1::TraceContext {
    fn from(t: TraceContext) -> Self {
        v1::TraceContext {
            trace_id: t.trace_id,
            span_id: t.span_id,
            trace_flags: t.flags,
            trace_state: t.state,
            correlation_id: t.correlation_id,
        }
    }
}

/// Announces the end of a profile. A field is empty if the profile does not have it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Deprecation {
    /// The name of the profile.
    pub profile: String,
    /// The name of the profile to use instead.
    pub replaced_by: String,
    /// Since when the profile should not be used.
    pub since: String,
    /// The time after which the profile may be removed.
    pub remove_after: String,
    /// Why the profile should not be used.
    pub reason: String,
}

impl From<v1::DeprecationWarning> for Deprecation {
    fn from(w: v1::DeprecationWarning) -> Self {
        Deprecation {
            profile: w.profile,
            replaced_by: w.replaced_by.unwrap_or_default(),
            since: w.deprecated_since.unwrap_or_default(),
            remove_after: w.remove_after.unwrap_or_default(),
            reason: w.reason.unwrap_or_default(),
        }
    }
}

/// The health of a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The broker does not say.
    Unknown,
    /// The broker has profiles and serves calls.
    Serving,
    /// The broker has no profiles yet, or shuts down.
    NotServing,
}

/// A digest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Digest {
    /// The digest.
    pub digest: Vec<u8>,
    /// The algorithm of the profile, such as "sha3-512".
    pub algorithm: String,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

impl Digest {
    /// Returns the digest in hexadecimal digits.
    pub fn hex(&self) -> String {
        self.digest.iter().map(|octet| format!("{octet:02x}")).collect()
    }
}

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Certificate {
    /// The certificate in DER.
    pub der: Vec<u8>,
    /// The algorithm of its signature, such as "ecdsa-with-sha-384".
    pub algorithm: String,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

/// A ciphertext, with what is needed to decrypt it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Encrypted {
    /// The ciphertext.
    pub ciphertext: Vec<u8>,
    /// The nonce that was used.
    pub nonce: Vec<u8>,
    /// The tag. It is empty if it is at the end of the ciphertext.
    pub tag: Vec<u8>,
    /// The id of the key, if it is one of the broker.
    pub key_id: String,
    /// The algorithm of the profile, such as "aes-gcm".
    pub algorithm: String,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

/// A plaintext. [`fmt::Debug`] leaves it out.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decrypted {
    /// The plaintext.
    pub plaintext: Vec<u8>,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

/// A signature.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signature {
    /// The signature.
    pub signature: Vec<u8>,
    /// The algorithm of the profile, such as "ed25519".
    pub algorithm: String,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

/// Whether a signature is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Whether the signature is valid.
    pub valid: bool,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

/// A new data key. [`fmt::Debug`] leaves it out.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GeneratedDataKey {
    /// The data key. It is empty if the call asked for none.
    pub data_key: Vec<u8>,
    /// The data key, wrapped.
    pub wrapped_key: Vec<u8>,
    /// The algorithm that wrapped it.
    pub algorithm: String,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

/// A wrapped key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrappedDataKey {
    /// The data key, wrapped.
    pub wrapped_key: Vec<u8>,
    /// The algorithm that wrapped it.
    pub algorithm: String,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

/// A data key. [`fmt::Debug`] leaves it out.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataKey {
    /// The data key.
    pub data_key: Vec<u8>,
    /// The algorithm that had wrapped it.
    pub algorithm: String,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

/// The results of an [`UnwrapBatch`](crate::UnwrapBatch), in the order of its keys.
#[non_exhaustive]
pub struct UnwrappedKeys {
    /// For each key the data key, or why there is none.
    pub keys: Vec<Result<Vec<u8>, Error>>,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

/// A key that was wrapped again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewrappedKey {
    /// The data key, wrapped.
    pub wrapped_key: Vec<u8>,
    /// Whether it was wrapped with the newest version of the key already. Then it is what the request has.
    pub unchanged: bool,
    /// The algorithm that wrapped it.
    pub algorithm: String,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublicKey {
    /// The SubjectPublicKeyInfo in DER (RFC 5280).
    pub der: Vec<u8>,
    /// The same in PEM.
    pub pem: String,
    /// The version of the key in its key manager, empty if it has none.
    pub version: String,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

/// The end of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamResult {
    /// The algorithm of the stream, such as "aes256-gcm-hkdf-64kb".
    pub algorithm: String,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

/// Writes how many octets a secret has, and not which.
pub(crate) struct Secret<'a>(pub &'a [u8]);

impl fmt::Debug for Secret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} octets]", self.0.len())
    }
}

impl fmt::Debug for Decrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decrypted").field("plaintext", &Secret(&self.plaintext)).field("deprecation", &self.deprecation).finish()
    }
}

impl fmt::Debug for GeneratedDataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeneratedDataKey")
            .field("data_key", &Secret(&self.data_key))
            .field("wrapped_key", &self.wrapped_key)
            .field("algorithm", &self.algorithm)
            .field("deprecation", &self.deprecation)
            .finish()
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataKey")
            .field("data_key", &Secret(&self.data_key))
            .field("algorithm", &self.algorithm)
            .field("deprecation", &self.deprecation)
            .finish()
    }
}

impl fmt::Debug for UnwrappedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.keys.iter().map(|key| key.as_ref().map(|octets| Secret(octets))).collect();
        f.debug_struct("UnwrappedKeys").field("keys", &keys).field("deprecation", &self.deprecation).finish()
    }
}
