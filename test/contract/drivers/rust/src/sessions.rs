// SPDX-License-Identifier: Apache-2.0

//! The operations of encrypted sessions.

use std::collections::HashMap;

use crypto_broker::{Client, Error, OpenedRequest};
use serde_json::{Value, json};

use crate::{base64, octets, ready, reply, text};

/// The headers of encrypted requests, with the names of their fields.
const HEADERS: [(&str, &str); 10] = [
    ("X-Kid", "kid"),
    ("X-Enc-Alg", "encAlg"),
    ("X-IV", "iv"),
    ("X-Tag", "tag"),
    ("X-AAD", "aad"),
    ("X-Nonce", "nonce"),
    ("X-Timestamp", "timestamp"),
    ("X-Idempotency-Key", "idempotencyKey"),
    ("X-ClientId", "clientId"),
    ("X-Sequence", "sequence"),
];

fn headers<C>(request: &Value, call: C, set: impl Fn(C, &str, String) -> C) -> C {
    HEADERS.iter().fold(call, |call, (name, field)| {
        set(call, name, text(request, field).to_string())
    })
}

/// The requests that were opened, by the ids of their sessions.
pub type Opened = HashMap<String, OpenedRequest>;

fn opened(mut request: OpenedRequest, sealing: &mut Opened) -> Value {
    let fields = json!({
        "plaintext": base64(&request.plaintext), "sessionId": request.session_id, "path": request.path,
        "clientPath": request.client_path, "clientId": request.client_id, "sequence": request.sequence,
    });
    let said = reply(fields, &request.algorithm, request.deprecation.take());
    sealing.insert(request.session_id.clone(), request);
    said
}

/// Makes a call of a session. It returns nothing for an operation that the client does not have.
pub async fn answer(
    client: &Client,
    operation: &str,
    r: &Value,
    sealing: &mut Opened,
) -> Result<Option<Value>, Error> {
    Ok(Some(match operation {
        "InitSession" => {
            let begin = client
                .init_session(text(r, "clientPublicKey"))
                .key_agreement(text(r, "keyAgreement"))
                .ttl_seconds(r["ttlSec"].as_u64().unwrap_or_default() as u32);
            let begin = headers(r, begin, |call, name, value| call.header(name, value));
            let made = ready(begin, r).await?;
            reply(
                json!({
                    "sessionId": made.session_id, "serverPublicKey": made.server_public_key, "encAlg": made.enc_alg,
                    "expiresInSec": made.expires_in_seconds, "signature": made.signature, "signatureAlgorithm": made.signature_algorithm,
                }),
                &made.algorithm,
                made.deprecation,
            )
        }
        "OpenRequest" => {
            let open = client.open_request(text(r, "method"), text(r, "path"), octets(r, "body"));
            let open = headers(r, open, |call, name, value| call.header(name, value));
            opened(ready(open, r).await?, sealing)
        }
        "RekeySession" => {
            let rekey = client.rekey_session(text(r, "method"), text(r, "path"), octets(r, "body"));
            let rekey = headers(r, rekey, |call, name, value| call.header(name, value));
            opened(ready(rekey, r).await?, sealing)
        }
        "SealReply" => {
            // A caller of this client has the result of the request, and no fields of it.
            let Some(request) = sealing.get(text(r, "sessionId")) else {
                return Ok(None);
            };
            let made = ready(client.seal_reply(request, octets(r, "plaintext")), r).await?;
            reply(
                json!({
                    "kid": made.kid, "encAlg": made.enc_alg, "iv": made.iv, "tag": made.tag, "aad": made.aad, "nonce": made.nonce,
                    "timestamp": made.timestamp, "idempotencyKey": made.idempotency_key, "clientId": made.client_id,
                    "sequence": made.sequence, "body": base64(&made.body),
                }),
                &made.algorithm,
                made.deprecation,
            )
        }
        "CloseSession" => {
            ready(client.close_session(text(r, "sessionId")), r).await?;
            json!({})
        }
        _ => return Ok(None),
    }))
}
