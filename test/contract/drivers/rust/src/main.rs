// SPDX-License-Identifier: Apache-2.0

//! The driver of the Rust client for the cases of the contract. README.md three directories above describes drivers.

mod sessions;

use std::{
    io::{BufRead, Write, stdin, stdout},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use crypto_broker::{Call, Client, Deprecation, Error, Health, Key, SignatureFormat, WrappedKey};
use serde_json::{Value, json};

const CALL_LIMIT: Duration = Duration::from_secs(60);

fn text<'a>(request: &'a Value, name: &str) -> &'a str {
    request[name].as_str().unwrap_or_default()
}

fn octets(request: &Value, name: &str) -> Vec<u8> {
    STANDARD
        .decode(text(request, name))
        .expect("a field of octets is base64")
}

fn base64(octets: &[u8]) -> Value {
    STANDARD.encode(octets).into()
}

/// Returns the key of the message KeySource.
fn key(source: &Value) -> Key {
    match source.get("rawKey") {
        Some(_) => Key::raw(octets(source, "rawKey")),
        None => Key::id(text(source, "keyId")),
    }
}

/// Returns the key, and the second one of a hybrid.
fn signing_keys(source: &Value) -> (Key, Option<Key>) {
    match source["componentKeys"]["keys"]
        .as_array()
        .map(Vec::as_slice)
    {
        Some([first, second]) => (key(first), Some(key(second))),
        _ => (key(&source["single"]), None),
    }
}

fn format(request: &Value) -> Option<SignatureFormat> {
    match text(request, "signatureFormat") {
        "SIGNATURE_FORMAT_RAW" => Some(SignatureFormat::Raw),
        "SIGNATURE_FORMAT_DER" => Some(SignatureFormat::Der),
        "SIGNATURE_FORMAT_PEM" => Some(SignatureFormat::Pem),
        "SIGNATURE_FORMAT_CMS" => Some(SignatureFormat::Cms),
        _ => None,
    }
}

/// Returns the value of a field with a time, which JSON may have as a text.
fn time(request: &Value, name: &str) -> Option<SystemTime> {
    let seconds = request.get(name)?;
    let seconds = seconds
        .as_u64()
        .or_else(|| seconds.as_str()?.parse().ok())?;
    Some(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Adds algorithm and warning to a reply.
fn reply(mut fields: Value, algorithm: &str, warning: Option<Deprecation>) -> Value {
    if !algorithm.is_empty() {
        fields["descriptor"] = json!({"algorithm": algorithm});
    }
    if let Some(w) = warning {
        fields["metadata"] = json!({"deprecation": {
            "profile": w.profile, "replacedBy": w.replaced_by, "deprecatedSince": w.since, "removeAfter": w.remove_after, "reason": w.reason,
        }});
    }
    fields
}

/// Sets what all calls have.
fn ready<O: crypto_broker::Operation>(call: Call<O>, request: &Value) -> Call<O> {
    call.profile(text(request, "profile")).timeout(CALL_LIMIT)
}

/// Sets something if it is there.
fn with<C, V>(call: C, value: Option<V>, set: impl FnOnce(C, V) -> C) -> C {
    match value {
        Some(value) => set(call, value),
        None => call,
    }
}

/// Returns the octets of a field, if they are there.
fn given(request: &Value, name: &str) -> Option<Vec<u8>> {
    request.get(name).map(|_| octets(request, name))
}

async fn answer(
    client: &Client,
    operation: &str,
    r: &Value,
    sealing: &mut sessions::Opened,
) -> Result<Option<Value>, Error> {
    Ok(Some(match operation {
        "Health" => json!({"status": match client.health().await? {
            Health::Serving => "SERVING",
            Health::NotServing => "NOT_SERVING",
            Health::Unknown => "UNKNOWN",
        }}),
        "HashData" => {
            let made = ready(client.hash_data(octets(r, "input")), r).await?;
            reply(
                json!({"hashValueRaw": base64(&made.digest)}),
                &made.algorithm,
                made.deprecation,
            )
        }
        "HashStream" => {
            let input = octets(r, "input");
            let made = client
                .hash_stream()
                .profile(text(r, "profile"))
                .timeout(CALL_LIMIT)
                .run(&input[..])
                .await?;
            reply(
                json!({"hashValueRaw": base64(&made.digest)}),
                &made.algorithm,
                made.deprecation,
            )
        }
        "EncryptStream" | "DecryptStream" => {
            let call = if operation == "EncryptStream" {
                client.encrypt_stream(text(r, "keyId"))
            } else {
                client.decrypt_stream()
            };
            let (input, mut output) = (octets(r, "input"), Vec::new());
            let call = call
                .context(octets(r, "context"))
                .profile(text(r, "profile"))
                .timeout(CALL_LIMIT);
            let made = call.run(&input[..], &mut output).await?;
            reply(
                json!({"output": base64(&output)}),
                &made.algorithm,
                made.deprecation,
            )
        }
        "SignCertificate" => {
            let call = ready(client.sign_certificate(text(r, "csr")), r)
                .issuer(text(r, "caPrivateKey"), text(r, "caCert"));
            let call = with(call, time(r, "validNotBefore"), Call::not_before);
            let call = with(call, time(r, "validNotAfter"), Call::not_after);
            let call = with(call, r["subject"].as_str(), Call::subject);
            let points = r["crlDistributionPoints"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let made = call
                .crl_distribution_points(
                    points.iter().filter_map(|p| p.as_str().map(str::to_owned)),
                )
                .await?;
            reply(
                json!({"der": base64(&made.der)}),
                &made.algorithm,
                made.deprecation,
            )
        }
        "EncryptData" => {
            let metadata = &r["encryptMetadata"];
            let call = ready(
                client.encrypt_data(key(&r["keySource"]), octets(r, "plaintext")),
                r,
            );
            let call = with(call, given(metadata, "nonce"), Call::nonce);
            let made = with(
                call,
                given(metadata, "aad"),
                Call::<crypto_broker::EncryptData>::additional_data,
            )
            .await?;
            let used = json!({"nonce": base64(&made.nonce), "tag": base64(&made.tag), "keyId": made.key_id});
            reply(
                json!({"ciphertext": base64(&made.ciphertext), "cipherMetadata": used}),
                &made.algorithm,
                made.deprecation,
            )
        }
        "DecryptData" => {
            let metadata = &r["decryptMetadata"];
            let call = client.decrypt_data(
                key(&r["keySource"]),
                octets(r, "ciphertext"),
                octets(metadata, "nonce"),
            );
            let call = with(ready(call, r), given(metadata, "tag"), Call::tag);
            let made = with(
                call,
                given(metadata, "aad"),
                Call::<crypto_broker::DecryptData>::additional_data,
            )
            .await?;
            reply(
                json!({"plaintext": base64(&made.plaintext)}),
                "",
                made.deprecation,
            )
        }
        "SignData" => {
            let (first, second) = signing_keys(&r["keySource"]);
            let call = with(
                ready(client.sign_data(first, octets(r, "input")), r),
                second,
                Call::<crypto_broker::SignData>::post_quantum_key,
            );
            let made = with(call, format(r), Call::<crypto_broker::SignData>::format).await?;
            reply(
                json!({"signature": base64(&made.signature)}),
                &made.algorithm,
                made.deprecation,
            )
        }
        "VerifyData" => {
            let (first, second) = signing_keys(&r["keySource"]);
            let call = ready(
                client.verify_data(first, octets(r, "input"), octets(r, "signature")),
                r,
            );
            let call = with(
                call,
                second,
                Call::<crypto_broker::VerifyData>::post_quantum_key,
            );
            let made = with(call, format(r), Call::<crypto_broker::VerifyData>::format).await?;
            reply(json!({"valid": made.valid}), "", made.deprecation)
        }
        "GenerateDataKey" => {
            let call =
                ready(client.generate_data_key(text(r, "keyId")), r).context(octets(r, "context"));
            let call = if r["withoutDataKey"] == true {
                call.without_data_key()
            } else {
                call
            };
            let made = call.await?;
            let fields =
                json!({"dataKey": base64(&made.data_key), "wrappedKey": base64(&made.wrapped_key)});
            reply(fields, &made.algorithm, made.deprecation)
        }
        "WrapKey" => {
            let made = ready(client.wrap_key(text(r, "keyId"), octets(r, "dataKey")), r)
                .context(octets(r, "context"))
                .await?;
            reply(
                json!({"wrappedKey": base64(&made.wrapped_key)}),
                &made.algorithm,
                made.deprecation,
            )
        }
        "UnwrapKey" => {
            let made = ready(client.unwrap_key(octets(r, "wrappedKey")), r)
                .context(octets(r, "context"))
                .await?;
            reply(
                json!({"dataKey": base64(&made.data_key)}),
                &made.algorithm,
                made.deprecation,
            )
        }
        "UnwrapBatch" => {
            let keys = r["keys"].as_array().cloned().unwrap_or_default();
            let keys = keys.iter().map(|key| WrappedKey {
                wrapped_key: octets(key, "wrappedKey"),
                context: octets(key, "context"),
            });
            let made = ready(client.unwrap_batch(keys), r).await?;
            let results: Vec<Value> = made
                .keys
                .iter()
                .map(|key| match key {
                    Ok(data_key) => json!({"dataKey": base64(data_key)}),
                    Err(error) => json!({"code": error.code as i32, "message": error.reason}),
                })
                .collect();
            reply(json!({"results": results}), "", made.deprecation)
        }
        "RewrapKey" => {
            let call =
                ready(client.rewrap_key(octets(r, "wrappedKey")), r).context(octets(r, "context"));
            let made = with(call, r["keyId"].as_str(), Call::key_id).await?;
            let fields =
                json!({"wrappedKey": base64(&made.wrapped_key), "unchanged": made.unchanged});
            reply(fields, &made.algorithm, made.deprecation)
        }
        "GetPublicKey" => {
            let made = ready(client.get_public_key(text(r, "keyId")), r).await?;
            reply(
                json!({"der": base64(&made.der), "pem": made.pem, "version": made.version}),
                "",
                made.deprecation,
            )
        }
        _ => return sessions::answer(client, operation, r, sealing).await,
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Client::builder();
    if std::env::args().any(|argument| argument == "--unary") {
        builder = builder.without_exchange();
    }
    let client = builder.build()?;
    let mut sealing = sessions::Opened::new();
    for line in stdin().lock().lines() {
        let call: Value = serde_json::from_str(&line?)?;
        let said = match answer(
            &client,
            text(&call, "operation"),
            &call["request"],
            &mut sealing,
        )
        .await
        {
            Ok(Some(reply)) => json!({"reply": reply}),
            Ok(None) => json!({"unsupported": true}),
            Err(error) => json!({"error": {
                "code": error.code.name(), "operation": error.operation, "profile": error.profile, "message": error.reason,
            }}),
        };
        println!("{said}");
        stdout().flush()?;
    }
    Ok(())
}
