// SPDX-License-Identifier: Apache-2.0

use std::fmt;

use crate::{
    call::{Call, Operation, warning_of},
    client::Client,
    results::{Deprecation, Secret},
    wire::{
        session::v1 as wire,
        stream::v1::{call, reply},
        v1,
    },
};

/// A session that has begun, with the fields of the reply to the client of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Session {
    /// The field sessionId.
    pub session_id: String,
    /// The field serverPublicKey.
    pub server_public_key: String,
    /// The field encAlg.
    pub enc_alg: String,
    /// The field expiresInSec.
    pub expires_in_seconds: u32,
    /// The signature of a native version in base64.
    pub signature: String,
    /// Its algorithm, such as "ecdsa-with-sha-256".
    pub signature_algorithm: String,
    /// The version of the protocol, such as "session-v1".
    pub algorithm: String,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

/// A request that was opened. [`fmt::Debug`] leaves the plaintext out.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenedRequest {
    /// The body of the request. It is empty for [`Client::rekey_session`].
    pub plaintext: Vec<u8>,
    /// The id of the session.
    pub session_id: String,
    /// The path in its normal form: the one to serve.
    pub path: String,
    /// The path for [`Client::seal_reply`].
    pub client_path: String,
    /// The client id of a session of version 2.
    pub client_id: String,
    /// The sequence of a request of a native version, for [`Client::seal_reply`].
    pub sequence: String,
    /// The version of the protocol, such as "session-v1".
    pub algorithm: String,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

impl fmt::Debug for OpenedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedRequest")
            .field("plaintext", &Secret(&self.plaintext))
            .field("session_id", &self.session_id)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Headers and body of an encrypted reply. A header that is empty does not belong to the version of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SealedReply {
    /// The body.
    pub body: Vec<u8>,
    /// The header X-Kid.
    pub kid: String,
    /// The header X-Enc-Alg.
    pub enc_alg: String,
    /// The header X-IV.
    pub iv: String,
    /// The header X-Tag.
    pub tag: String,
    /// The header X-AAD.
    pub aad: String,
    /// The header X-Nonce.
    pub nonce: String,
    /// The header X-Timestamp.
    pub timestamp: String,
    /// The header X-Idempotency-Key.
    pub idempotency_key: String,
    /// The header X-ClientId.
    pub client_id: String,
    /// The header X-Sequence.
    pub sequence: String,
    /// The version of the protocol, such as "session-v1".
    pub algorithm: String,
    /// The warning of a deprecated profile.
    pub deprecation: Option<Deprecation>,
}

/// Defines an operation of sessions, which streams do not carry.
macro_rules! operation {
    ($(#[$doc:meta])* $name:ident, $request:ident => $reply:ident, $output:ty, $read:expr) => {
        $(#[$doc])*
        pub struct $name(wire::$request);

        impl Operation for $name {
            type Request = wire::$request;
            type Reply = wire::$reply;
            type Output = $output;
            const NAME: &'static str = stringify!($name);
            const PATH: &'static str = concat!("/cryptobroker.session.v1.SessionService/", stringify!($name));

            fn into_request(self, profile: String, metadata: Option<v1::Metadata>) -> Self::Request {
                wire::$request { profile, metadata, ..self.0 }
            }

            fn exchanged(_: &Self::Request) -> Option<call::Request> {
                None
            }

            fn answered(_: reply::Result) -> Option<Self::Reply> {
                None
            }

            fn read(_: &Self::Request, reply: Self::Reply, client: &Client) -> Result<Self::Output, &'static str> {
                let read: fn(Self::Reply, &Client) -> Result<Self::Output, &'static str> = $read;
                read(reply, client)
            }
        }
    };
}

fn algorithm(descriptor: Option<v1::CryptoDescriptor>) -> String {
    descriptor.map(|d| d.algorithm).unwrap_or_default()
}

operation!(
    /// A call of [`Client::init_session`].
    InitSession, InitSessionRequest => InitSessionResponse, Session, |reply, client| {
        if reply.session_id.is_empty() || reply.server_public_key.is_empty() {
            return Err("session");
        }
        Ok(Session {
            session_id: reply.session_id,
            server_public_key: reply.server_public_key,
            enc_alg: reply.enc_alg,
            expires_in_seconds: reply.expires_in_sec,
            signature: reply.signature,
            signature_algorithm: reply.signature_algorithm,
            algorithm: algorithm(reply.descriptor),
            deprecation: warning_of(client, reply.metadata),
        })
    }
);

operation!(
    /// A call of [`Client::open_request`].
    OpenRequest, OpenRequestRequest => OpenRequestResponse, OpenedRequest, |reply, client| {
        if reply.session_id.is_empty() {
            return Err("session");
        }
        Ok(OpenedRequest {
            plaintext: reply.plaintext,
            session_id: reply.session_id,
            path: reply.path,
            client_path: reply.client_path,
            client_id: reply.client_id,
            sequence: reply.sequence,
            algorithm: algorithm(reply.descriptor),
            deprecation: warning_of(client, reply.metadata),
        })
    }
);

operation!(
    /// A call of [`Client::seal_reply`].
    SealReply, SealReplyRequest => SealReplyResponse, SealedReply, |reply, client| {
        if reply.kid.is_empty() {
            return Err("session");
        }
        Ok(SealedReply {
            body: reply.body,
            kid: reply.kid,
            enc_alg: reply.enc_alg,
            iv: reply.iv,
            tag: reply.tag,
            aad: reply.aad,
            nonce: reply.nonce,
            timestamp: reply.timestamp,
            idempotency_key: reply.idempotency_key,
            client_id: reply.client_id,
            sequence: reply.sequence,
            algorithm: algorithm(reply.descriptor),
            deprecation: warning_of(client, reply.metadata),
        })
    }
);

operation!(
    /// A call of [`Client::close_session`].
    CloseSession, CloseSessionRequest => CloseSessionResponse, (), |reply, client| {
        warning_of(client, reply.metadata);
        Ok(())
    }
);

operation!(
    /// A call of [`Client::rekey_session`].
    RekeySession, RekeySessionRequest => RekeySessionResponse, OpenedRequest, |reply, client| {
        if reply.session_id.is_empty() {
            return Err("session");
        }
        Ok(OpenedRequest {
            plaintext: Vec::new(),
            session_id: reply.session_id,
            path: reply.path,
            client_path: reply.client_path,
            client_id: String::new(),
            sequence: reply.sequence,
            algorithm: algorithm(reply.descriptor),
            deprecation: warning_of(client, reply.metadata),
        })
    }
);

impl Client {
    /// Agrees on a key with a client of the application, by the field clientPublicKey that it sent. If the call is made again,
    /// the broker begins another session.
    pub fn init_session(&self, client_public_key: impl Into<String>) -> Call<InitSession> {
        let client_public_key = client_public_key.into();
        self.call(InitSession(wire::InitSessionRequest { client_public_key, ..Default::default() }))
    }

    /// Decrypts a request of a session: the method of the HTTP request, its path without the query, and its body of at most 1
    /// MiB. [`Call::header`] sets the headers that the client of the application sent.
    ///
    /// The broker opens each request once. If the connection breaks meanwhile, this client asks again, and the broker may refuse
    /// the request as opened before: then the client of the application has to send a new one.
    pub fn open_request(&self, method: impl Into<String>, path: impl Into<String>, body: impl Into<Vec<u8>>) -> Call<OpenRequest> {
        self.call(OpenRequest(wire::OpenRequestRequest {
            method: method.into(),
            path: path.into(),
            body: body.into(),
            ..Default::default()
        }))
    }

    /// Encrypts a reply of at most 1 MiB to a request that was opened. If the call is made again, the broker encrypts with
    /// another IV and another nonce.
    pub fn seal_reply(&self, request: &OpenedRequest, plaintext: impl Into<Vec<u8>>) -> Call<SealReply> {
        self.call(SealReply(wire::SealReplyRequest {
            session_id: request.session_id.clone(),
            client_path: request.client_path.clone(),
            sequence: request.sequence.clone(),
            plaintext: plaintext.into(),
            ..Default::default()
        }))
    }

    /// Ends a session, and the broker overwrites its key. It is no error if there is no such session.
    pub fn close_session(&self, session_id: impl Into<String>) -> Call<CloseSession> {
        self.call(CloseSession(wire::CloseSessionRequest { session_id: session_id.into(), ..Default::default() }))
    }

    /// Gives a session of a native version its next key, if the request of the client of the application asks for it. The
    /// arguments are as in [`Client::open_request`], and [`Client::seal_reply`] makes the reply, with an empty plaintext.
    pub fn rekey_session(
        &self,
        method: impl Into<String>,
        path: impl Into<String>,
        body: impl Into<Vec<u8>>,
    ) -> Call<RekeySession> {
        self.call(RekeySession(wire::RekeySessionRequest {
            method: method.into(),
            path: path.into(),
            body: body.into(),
            ..Default::default()
        }))
    }
}

impl Call<InitSession> {
    /// Sets the field keyAgreement of the body.
    pub fn key_agreement(mut self, name: impl Into<String>) -> Self {
        self.operation.0.key_agreement = name.into();
        self
    }

    /// Sets the field ttlSec of the body.
    pub fn ttl_seconds(mut self, seconds: u32) -> Self {
        self.operation.0.ttl_sec = seconds;
        self
    }

    /// Sets a header, by its name in any case. Headers that the protocol does not have are left out.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        let request = &mut self.operation.0;
        match name.to_ascii_lowercase().as_str() {
            "x-nonce" => request.nonce = value.into(),
            "x-timestamp" => request.timestamp = value.into(),
            "x-clientid" => request.client_id = value.into(),
            _ => {}
        }
        self
    }
}

impl Call<OpenRequest> {
    /// Sets a header, by its name in any case. Headers that the protocol does not have are left out, so that all headers of a
    /// request may be given.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        let request = &mut self.operation.0;
        match name.to_ascii_lowercase().as_str() {
            "x-kid" => request.kid = value.into(),
            "x-enc-alg" => request.enc_alg = value.into(),
            "x-iv" => request.iv = value.into(),
            "x-tag" => request.tag = value.into(),
            "x-aad" => request.aad = value.into(),
            "x-nonce" => request.nonce = value.into(),
            "x-timestamp" => request.timestamp = value.into(),
            "x-idempotency-key" => request.idempotency_key = value.into(),
            "x-clientid" => request.client_id = value.into(),
            "x-sequence" => request.sequence = value.into(),
            _ => {}
        }
        self
    }
}

impl Call<RekeySession> {
    /// Sets a header, by its name in any case. Headers that the protocol does not have are left out.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        let request = &mut self.operation.0;
        match name.to_ascii_lowercase().as_str() {
            "x-kid" => request.kid = value.into(),
            "x-enc-alg" => request.enc_alg = value.into(),
            "x-timestamp" => request.timestamp = value.into(),
            "x-sequence" => request.sequence = value.into(),
            _ => {}
        }
        self
    }
}
