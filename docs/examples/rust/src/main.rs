// SPDX-License-Identifier: Apache-2.0

//! A service that answers POST /hash with the digest of the body.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use crypto_broker::{Client, Health};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

/// What HashData takes, in bytes.
const MAX_BODY: usize = 1 << 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::builder().profile("Default").timeout(Duration::from_secs(10)).build()?;
    let app = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/hash", post(hash))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(client);
    let listener = tokio::net::TcpListener::bind("0.0.0.0:8080").await?;
    let mut terminate = signal(SignalKind::terminate())?;
    axum::serve(listener, app)
        .with_graceful_shutdown(async move {
            terminate.recv().await;
        })
        .await?;
    Ok(())
}

async fn readyz(State(client): State<Client>) -> Result<&'static str, StatusCode> {
    match client.health().await {
        Ok(Health::Serving) => Ok("ok\n"),
        _ => Err(StatusCode::SERVICE_UNAVAILABLE),
    }
}

async fn hash(State(client): State<Client>, body: Bytes) -> Result<Json<Value>, StatusCode> {
    let hashed = client.hash_data(body).await.map_err(|error| {
        eprintln!("{error}");
        StatusCode::BAD_GATEWAY
    })?;
    Ok(Json(json!({"algorithm": hashed.algorithm, "digest": hashed.hex()})))
}
