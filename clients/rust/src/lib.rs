// SPDX-License-Identifier: Apache-2.0

//! A client of the Crypto Broker, which does cryptography for applications by named profiles, over a Unix socket.
//!
//! ```no_run
//! # async fn run() -> Result<(), crypto_broker::Error> {
//! let client = crypto_broker::Client::builder().profile("Default").build()?;
//! let hashed = client.hash_data("abc").await?;
//! println!("{} {}", hashed.algorithm, hashed.hex());
//! # Ok(())
//! # }
//! ```
//!
//! A method of [`Client`] begins to describe a call, and `await` makes it. Between them, methods of [`Call`] set what is optional.
//! The client needs a runtime of Tokio with I/O and time.

mod call;
mod client;
mod error;
mod exchange;
mod operations;
mod raw;
mod results;
mod retry;
mod sessions;
mod streams;
mod transport;
mod wire;

pub use call::{Call, Operation};
pub use client::{Builder, Client, DEFAULT_SOCKET, SOCKET_VARIABLE};
pub use error::{Code, Error};
pub use operations::{
    DecryptData, EncryptData, GenerateDataKey, GetPublicKey, HashData, Key, RewrapKey, SignCertificate, SignData, SignatureFormat,
    UnwrapBatch, UnwrapKey, VerifyData, WrapKey, WrappedKey,
};
pub use results::{
    Certificate, DataKey, Decrypted, Deprecation, Digest, Encrypted, GeneratedDataKey, Health, PublicKey, RewrappedKey, Signature,
    StreamResult, TraceContext, UnwrappedKeys, Verified, WrappedDataKey,
};
pub use sessions::{CloseSession, InitSession, OpenRequest, OpenedRequest, RekeySession, SealReply, SealedReply, Session};
pub use streams::{CipherStream, HashStream};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
