// SPDX-License-Identifier: Apache-2.0

use std::{
    fmt,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    call::{Call, Operation, warning_of},
    client::Client,
    error::{Code, Failure},
    results::{
        Certificate, DataKey, Decrypted, Digest, Encrypted, GeneratedDataKey, PublicKey, RewrappedKey, Secret, Signature,
        UnwrappedKeys, Verified, WrappedDataKey,
    },
    wire::{
        stream::v1::{call, reply},
        v1,
    },
};

/// A key for a call.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Key {
    /// A key of the broker, by its id: at most 64 octets of printable ASCII without spaces. The profile has to list it.
    Id(String),
    /// A key that the request brings: 16, 24 or 32 octets of an AES key, or a key in PEM or DER of at most 64 KiB. A profile that
    /// lists keys of the broker refuses it.
    Raw(Vec<u8>),
}

impl Key {
    /// Returns a key of the broker.
    pub fn id(id: impl Into<String>) -> Key {
        Key::Id(id.into())
    }

    /// Returns a key that the request brings.
    pub fn raw(octets: impl Into<Vec<u8>>) -> Key {
        Key::Raw(octets.into())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Id(id) => f.debug_tuple("Id").field(id).finish(),
            Key::Raw(octets) => f.debug_tuple("Raw").field(&Secret(octets)).finish(),
        }
    }
}

impl From<Key> for v1::KeySource {
    fn from(key: Key) -> Self {
        use v1::key_source::Source;
        v1::KeySource {
            source: Some(match key {
                Key::Id(id) => Source::KeyId(id),
                Key::Raw(octets) => Source::RawKey(octets),
            }),
        }
    }
}

/// The encoding of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureFormat {
    /// r and s joined for ECDSA, and the octets of the algorithm otherwise.
    Raw = 1,
    /// An ECDSA-Sig-Value (RFC 3279) for ECDSA, and the octets of the algorithm otherwise.
    Der = 2,
    /// DER in PEM with the label SIGNATURE.
    Pem = 3,
    /// A detached SignedData (RFC 5652).
    Cms = 4,
}

/// A wrapped key of an [`UnwrapBatch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedKey {
    /// The wrapped key.
    pub wrapped_key: Vec<u8>,
    /// The context that it is bound to, empty if there is none.
    pub context: Vec<u8>,
}

/// Defines an operation that is a unary call and a call of a stream.
macro_rules! operation {
    ($(#[$doc:meta])* $name:ident, $request:ident => $reply:ident, $output:ty, with request $read:expr) => {
        $(#[$doc])*
        pub struct $name(v1::$request);

        impl Operation for $name {
            type Request = v1::$request;
            type Reply = v1::$reply;
            type Output = $output;
            const NAME: &'static str = stringify!($name);
            const PATH: &'static str = concat!("/cryptobroker.v1.CryptoService/", stringify!($name));

            fn into_request(self, profile: String, metadata: Option<v1::Metadata>) -> Self::Request {
                v1::$request { profile, metadata, ..self.0 }
            }

            fn exchanged(request: &Self::Request) -> Option<call::Request> {
                Some(call::Request::$name(request.clone()))
            }

            fn answered(result: reply::Result) -> Option<Self::Reply> {
                match result {
                    reply::Result::$name(reply) => Some(reply),
                    _ => None,
                }
            }

            fn read(request: &Self::Request, reply: Self::Reply, client: &Client) -> Result<Self::Output, &'static str> {
                let read: fn(&Self::Request, Self::Reply, &Client) -> Result<Self::Output, &'static str> = $read;
                read(request, reply, client)
            }
        }
    };
    ($(#[$doc:meta])* $name:ident, $request:ident => $reply:ident, $output:ty, $read:expr) => {
        operation!($(#[$doc])* $name, $request => $reply, $output, with request |_, reply, client| {
            let read: fn(v1::$reply, &Client) -> Result<$output, &'static str> = $read;
            read(reply, client)
        });
    };
}

fn algorithm(descriptor: Option<v1::CryptoDescriptor>) -> String {
    descriptor.map(|d| d.algorithm).unwrap_or_default()
}

operation!(
    /// A call of [`Client::hash_data`].
    HashData, HashDataRequest => HashDataResponse, Digest, |reply, client| {
        let Some(v1::hash_data_response::HashValue::HashValueRaw(digest)) = reply.hash_value else { return Err("digest") };
        Ok(Digest { digest, algorithm: algorithm(reply.descriptor), deprecation: warning_of(client, reply.metadata) })
    }
);

operation!(
    /// A call of [`Client::sign_certificate`].
    SignCertificate, SignCertificateRequest => SignCertificateResponse, Certificate, |reply, client| {
        let Some(v1::sign_certificate_response::SignedCertificate::Der(der)) = reply.signed_certificate else { return Err("certificate") };
        Ok(Certificate { der, algorithm: algorithm(reply.descriptor), deprecation: warning_of(client, reply.metadata) })
    }
);

operation!(
    /// A call of [`Client::encrypt_data`].
    EncryptData, EncryptDataRequest => EncryptDataResponse, Encrypted, |reply, client| {
        let Some(used) = reply.cipher_metadata else { return Err("nonce") };
        Ok(Encrypted {
            ciphertext: reply.ciphertext,
            nonce: used.nonce,
            tag: used.tag.unwrap_or_default(),
            key_id: used.key_id.unwrap_or_default(),
            algorithm: algorithm(reply.descriptor),
            deprecation: warning_of(client, reply.metadata),
        })
    }
);

operation!(
    /// A call of [`Client::decrypt_data`].
    DecryptData, DecryptDataRequest => DecryptDataResponse, Decrypted, |reply, client| {
        Ok(Decrypted { plaintext: reply.plaintext, deprecation: warning_of(client, reply.metadata) })
    }
);

operation!(
    /// A call of [`Client::sign_data`].
    SignData, SignDataRequest => SignDataResponse, Signature, |reply, client| {
        if reply.signature.is_empty() {
            return Err("signature");
        }
        Ok(Signature {
            signature: reply.signature,
            algorithm: algorithm(reply.descriptor),
            deprecation: warning_of(client, reply.metadata),
        })
    }
);

operation!(
    /// A call of [`Client::verify_data`].
    VerifyData, VerifyDataRequest => VerifyDataResponse, Verified, |reply, client| {
        Ok(Verified { valid: reply.valid, deprecation: warning_of(client, reply.metadata) })
    }
);

operation!(
    /// A call of [`Client::generate_data_key`].
    GenerateDataKey, GenerateDataKeyRequest => GenerateDataKeyResponse, GeneratedDataKey, |reply, client| {
        if reply.wrapped_key.is_empty() {
            return Err("wrapped key");
        }
        Ok(GeneratedDataKey {
            data_key: reply.data_key,
            wrapped_key: reply.wrapped_key,
            algorithm: algorithm(reply.descriptor),
            deprecation: warning_of(client, reply.metadata),
        })
    }
);

operation!(
    /// A call of [`Client::wrap_key`].
    WrapKey, WrapKeyRequest => WrapKeyResponse, WrappedDataKey, |reply, client| {
        if reply.wrapped_key.is_empty() {
            return Err("wrapped key");
        }
        Ok(WrappedDataKey {
            wrapped_key: reply.wrapped_key,
            algorithm: algorithm(reply.descriptor),
            deprecation: warning_of(client, reply.metadata),
        })
    }
);

operation!(
    /// A call of [`Client::unwrap_key`].
    UnwrapKey, UnwrapKeyRequest => UnwrapKeyResponse, DataKey, |reply, client| {
        if reply.data_key.is_empty() {
            return Err("data key");
        }
        Ok(DataKey {
            data_key: reply.data_key,
            algorithm: algorithm(reply.descriptor),
            deprecation: warning_of(client, reply.metadata),
        })
    }
);

operation!(
    /// A call of [`Client::unwrap_batch`].
    UnwrapBatch, UnwrapBatchRequest => UnwrapBatchResponse, UnwrappedKeys, with request |request, reply, client| {
        if reply.results.len() != request.keys.len() {
            return Err("result for each key");
        }
        let keys = reply.results.into_iter().map(|key| match key.code {
            0 if key.data_key.is_empty() => Err("data key or error for each wrapped key"),
            0 => Ok(Ok(key.data_key)),
            code => {
                // The sentence of the broker begins with UnwrapKey.
                let failure = Failure::new(Code::from_number(code), key.message);
                let mut error = failure.into_error(UnwrapKey::NAME, &request.profile);
                error.operation = UnwrapBatch::NAME;
                Ok(Err(error))
            }
        });
        Ok(UnwrappedKeys { keys: keys.collect::<Result<_, _>>()?, deprecation: warning_of(client, reply.metadata) })
    }
);

operation!(
    /// A call of [`Client::rewrap_key`].
    RewrapKey, RewrapKeyRequest => RewrapKeyResponse, RewrappedKey, |reply, client| {
        if reply.wrapped_key.is_empty() {
            return Err("wrapped key");
        }
        Ok(RewrappedKey {
            wrapped_key: reply.wrapped_key,
            unchanged: reply.unchanged,
            algorithm: algorithm(reply.descriptor),
            deprecation: warning_of(client, reply.metadata),
        })
    }
);

operation!(
    /// A call of [`Client::get_public_key`].
    GetPublicKey, GetPublicKeyRequest => GetPublicKeyResponse, PublicKey, |reply, client| {
        if reply.der.is_empty() {
            return Err("key");
        }
        Ok(PublicKey { der: reply.der, pem: reply.pem, version: reply.version, deprecation: warning_of(client, reply.metadata) })
    }
);

impl Client {
    /// Computes the digest of up to 1 MiB by the algorithm of a profile. [`Client::hash_stream`] has no limit.
    pub fn hash_data(&self, input: impl Into<Vec<u8>>) -> Call<HashData> {
        let output_format = v1::HashOutputFormat::Raw.into();
        self.call(HashData(v1::HashDataRequest { input: input.into(), output_format, ..Default::default() }))
    }

    /// Issues a certificate by the rules of a profile, for a certificate request (PKCS #10) in PEM.
    pub fn sign_certificate(&self, csr: impl Into<String>) -> Call<SignCertificate> {
        let output_format = v1::SignOutputFormat::Der.into();
        self.call(SignCertificate(v1::SignCertificateRequest { csr: csr.into(), output_format, ..Default::default() }))
    }

    /// Encrypts up to 1 MiB by the algorithm of a profile.
    pub fn encrypt_data(&self, key: Key, plaintext: impl Into<Vec<u8>>) -> Call<EncryptData> {
        self.call(EncryptData(v1::EncryptDataRequest {
            key_source: Some(key.into()),
            plaintext: plaintext.into(),
            ..Default::default()
        }))
    }

    /// Decrypts what [`Client::encrypt_data`] has encrypted, with the nonce of its result, if it is authentic.
    pub fn decrypt_data(&self, key: Key, ciphertext: impl Into<Vec<u8>>, nonce: impl Into<Vec<u8>>) -> Call<DecryptData> {
        self.call(DecryptData(v1::DecryptDataRequest {
            key_source: Some(key.into()),
            ciphertext: ciphertext.into(),
            decrypt_metadata: Some(v1::DecryptMetadata { nonce: nonce.into(), ..Default::default() }),
            ..Default::default()
        }))
    }

    /// Signs up to 1 MiB by the algorithm of a profile.
    pub fn sign_data(&self, key: Key, input: impl Into<Vec<u8>>) -> Call<SignData> {
        self.call(SignData(v1::SignDataRequest { key_source: signing(key, None), input: input.into(), ..Default::default() }))
    }

    /// Reports whether a signature is valid. The key is a public one in PEM or DER, or a key of the broker.
    pub fn verify_data(&self, key: Key, input: impl Into<Vec<u8>>, signature: impl Into<Vec<u8>>) -> Call<VerifyData> {
        self.call(VerifyData(v1::VerifyDataRequest {
            key_source: signing(key, None),
            input: input.into(),
            signature: signature.into(),
            ..Default::default()
        }))
    }

    /// Makes a data key, wrapped with a key of the broker.
    pub fn generate_data_key(&self, key_id: impl Into<String>) -> Call<GenerateDataKey> {
        self.call(GenerateDataKey(v1::GenerateDataKeyRequest { key_id: key_id.into(), ..Default::default() }))
    }

    /// Wraps a data key of 16, 24, 32 or up to 64 octets with a key of the broker.
    pub fn wrap_key(&self, key_id: impl Into<String>, data_key: impl Into<Vec<u8>>) -> Call<WrapKey> {
        self.call(WrapKey(v1::WrapKeyRequest { key_id: key_id.into(), data_key: data_key.into(), ..Default::default() }))
    }

    /// Returns the data key of a wrapped key.
    pub fn unwrap_key(&self, wrapped_key: impl Into<Vec<u8>>) -> Call<UnwrapKey> {
        self.call(UnwrapKey(v1::UnwrapKeyRequest { wrapped_key: wrapped_key.into(), ..Default::default() }))
    }

    /// Returns the data keys of many wrapped keys. A key that cannot be unwrapped fails alone.
    pub fn unwrap_batch(&self, keys: impl IntoIterator<Item = WrappedKey>) -> Call<UnwrapBatch> {
        let keys = keys.into_iter().map(|key| v1::WrappedKey { wrapped_key: key.wrapped_key, context: key.context });
        self.call(UnwrapBatch(v1::UnwrapBatchRequest { keys: keys.collect(), ..Default::default() }))
    }

    /// Wraps a wrapped key again, with the newest version of its key or with another key.
    pub fn rewrap_key(&self, wrapped_key: impl Into<Vec<u8>>) -> Call<RewrapKey> {
        self.call(RewrapKey(v1::RewrapKeyRequest { wrapped_key: wrapped_key.into(), ..Default::default() }))
    }

    /// Returns the public key of a key pair of the broker.
    pub fn get_public_key(&self, key_id: impl Into<String>) -> Call<GetPublicKey> {
        self.call(GetPublicKey(v1::GetPublicKeyRequest { key_id: key_id.into(), ..Default::default() }))
    }
}

/// Returns the key, or the keys of a hybrid, of a signature.
fn signing(key: Key, post_quantum: Option<Key>) -> Option<v1::SignKeySource> {
    use v1::sign_key_source::Source;
    Some(v1::SignKeySource {
        source: Some(match post_quantum {
            None => Source::Single(key.into()),
            Some(second) => Source::ComponentKeys(v1::ComponentKeys { keys: vec![key.into(), second.into()] }),
        }),
    })
}

/// Adds the second key of a hybrid.
fn add_post_quantum(source: &mut Option<v1::SignKeySource>, second: Key) {
    use v1::sign_key_source::Source;
    if let Some(v1::SignKeySource { source: Some(source) }) = source
        && let Source::Single(first) = source
    {
        let keys = vec![std::mem::take(first), second.into()];
        *source = Source::ComponentKeys(v1::ComponentKeys { keys });
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

impl Call<SignCertificate> {
    /// Sets the key and the certificate of the issuer, in PEM. Without them, the profile names them.
    pub fn issuer(mut self, private_key: impl Into<String>, certificate: impl Into<String>) -> Self {
        self.operation.0.ca_private_key = private_key.into();
        self.operation.0.ca_cert = certificate.into();
        self
    }

    /// Sets from when the certificate is valid, within what the profile allows.
    pub fn not_before(mut self, time: SystemTime) -> Self {
        self.operation.0.valid_not_before = Some(seconds(time));
        self
    }

    /// Sets until when the certificate is valid, within what the profile allows.
    pub fn not_after(mut self, time: SystemTime) -> Self {
        self.operation.0.valid_not_after = Some(seconds(time));
        self
    }

    /// Sets the subject (RFC 4514), instead of the subject in the request.
    pub fn subject(mut self, name: impl Into<String>) -> Self {
        self.operation.0.subject = Some(name.into());
        self
    }

    /// Sets the URLs of lists of revoked certificates.
    pub fn crl_distribution_points(mut self, urls: impl IntoIterator<Item = String>) -> Self {
        self.operation.0.crl_distribution_points = urls.into_iter().collect();
        self
    }
}

impl Call<EncryptData> {
    /// Sets the nonce, if the profile lets the caller choose it. Never use a nonce twice with a key.
    pub fn nonce(mut self, nonce: impl Into<Vec<u8>>) -> Self {
        self.operation.0.encrypt_metadata.get_or_insert_default().nonce = nonce.into();
        self
    }

    /// Sets data that is authenticated and not encrypted, at most 64 KiB.
    pub fn additional_data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.operation.0.encrypt_metadata.get_or_insert_default().aad = Some(data.into());
        self
    }
}

impl Call<DecryptData> {
    /// Sets the tag, if it is not at the end of the ciphertext.
    pub fn tag(mut self, tag: impl Into<Vec<u8>>) -> Self {
        self.operation.0.decrypt_metadata.get_or_insert_default().tag = Some(tag.into());
        self
    }

    /// Sets the additional data of the encryption.
    pub fn additional_data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.operation.0.decrypt_metadata.get_or_insert_default().aad = Some(data.into());
        self
    }
}

impl Call<SignData> {
    /// Sets the second key of a hybrid signature.
    pub fn post_quantum_key(mut self, key: Key) -> Self {
        add_post_quantum(&mut self.operation.0.key_source, key);
        self
    }

    /// Sets the encoding of the signature, instead of the encoding that the profile has.
    pub fn format(mut self, format: SignatureFormat) -> Self {
        self.operation.0.signature_format = format as i32;
        self
    }
}

impl Call<VerifyData> {
    /// Sets the second key of a hybrid signature.
    pub fn post_quantum_key(mut self, key: Key) -> Self {
        add_post_quantum(&mut self.operation.0.key_source, key);
        self
    }

    /// Says how the signature is encoded, if it is not as the profile says.
    pub fn format(mut self, format: SignatureFormat) -> Self {
        self.operation.0.signature_format = format as i32;
        self
    }
}

/// Adds the context of wrapped keys.
macro_rules! context {
    ($($name:ident),*) => {
        $(impl Call<$name> {
            /// Sets what the wrapped key is bound to, at most 4 KiB. It is needed again to unwrap.
            pub fn context(mut self, context: impl Into<Vec<u8>>) -> Self {
                self.operation.0.context = context.into();
                self
            }
        })*
    };
}

context!(GenerateDataKey, WrapKey, UnwrapKey, RewrapKey);

impl Call<GenerateDataKey> {
    /// Leaves the data key out of the reply, for those who only store it.
    pub fn without_data_key(mut self) -> Self {
        self.operation.0.without_data_key = true;
        self
    }
}

impl Call<RewrapKey> {
    /// Names the key to wrap with, instead of the key that has wrapped it.
    pub fn key_id(mut self, id: impl Into<String>) -> Self {
        self.operation.0.key_id = id.into();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(results: Vec<v1::UnwrapResult>) -> Result<UnwrappedKeys, &'static str> {
        let request = v1::UnwrapBatchRequest { profile: "Data".into(), keys: vec![Default::default(); 2], ..Default::default() };
        let reply = v1::UnwrapBatchResponse { results, ..Default::default() };
        UnwrapBatch::read(&request, reply, &Client::new().unwrap())
    }

    #[tokio::test]
    async fn a_reply_to_a_batch_has_a_result_for_each_key() {
        let good = || v1::UnwrapResult { data_key: vec![1; 16], ..Default::default() };
        for (results, lacks) in [
            (vec![good()], "result for each key"),
            (vec![good(), good(), good()], "result for each key"),
            (vec![good(), Default::default()], "data key or error for each wrapped key"),
        ] {
            assert_eq!(read(results).map(|keys| keys.keys.len()).unwrap_err(), lacks);
        }
        assert_eq!(read(vec![good(), good()]).map(|keys| keys.keys.len()).unwrap(), 2);
    }

    #[tokio::test]
    async fn the_error_of_a_key_names_the_batch_and_the_profile() {
        let bad =
            || v1::UnwrapResult { code: 3, message: "UnwrapKey with profile \"Data\": it is damaged".into(), ..Default::default() };
        for key in read(vec![bad(), bad()]).map(|keys| keys.keys).unwrap() {
            let error = key.unwrap_err();
            assert_eq!((error.code, error.operation, error.profile.as_str()), (Code::InvalidArgument, "UnwrapBatch", "Data"));
            assert_eq!(error.reason, "UnwrapKey with profile \"Data\": it is damaged");
        }
    }
}
