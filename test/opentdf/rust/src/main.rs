// SPDX-License-Identifier: Apache-2.0

//! Decrypts a file with the crate opentdf: opentdf-client bearer|p256|ed25519 SERVICE TOKENS FROM TO

use std::error::Error;

use opentdf::kas_discovery::fetch_well_known;
use opentdf::{CallerKey, KasClient, Tdf, ed25519_dalek, p256};

/// The private key of the client. Each run is a client of its own, so a fixed key is enough.
const KEY: [u8; 32] = [7; 32];

/// Gets a token, which is bound to the key if there is one.
async fn token(url: &str, key: Option<&CallerKey>) -> Result<String, Box<dyn Error>> {
    let form = [("grant_type", "client_credentials"), ("client_id", "reader"), ("client_secret", "secret")];
    let mut request = reqwest::Client::new().post(url).form(&form);
    if let Some(key) = key {
        request = request.header("DPoP", key.dpop_proof("POST", url, "")?);
    }
    let answer: serde_json::Value = request.send().await?.error_for_status()?.json().await?;
    Ok(answer["access_token"].as_str().ok_or("found no access_token")?.to_string())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [key, service, tokens, from, to] = arguments.as_slice() else { return Err("expected five arguments".into()) };
    let key = match key.as_str() {
        "bearer" => None,
        "p256" => Some(CallerKey::P256(p256::ecdsa::SigningKey::from_slice(&KEY)?)),
        "ed25519" => Some(CallerKey::Ed25519(ed25519_dalek::SigningKey::from_bytes(&KEY))),
        other => return Err(format!("found {other:?}, expected a kind of key").into()),
    };
    let token = token(tokens, key.as_ref()).await?;
    let mut client = KasClient::new(&fetch_well_known(service, &reqwest::Client::new()).await?, token)?;
    if let Some(key) = key {
        client = client.with_caller_key(key);
    }
    std::fs::write(to, Tdf::decrypt(std::fs::read(from)?).kas_client(client).to_bytes().await?)?;
    Ok(())
}
