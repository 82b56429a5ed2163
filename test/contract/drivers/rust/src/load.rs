// SPDX-License-Identifier: Apache-2.0

//! Makes loads with the Rust client and with tonic. README.md three directories above describes loads.

use std::{
    io::{BufRead, Write, stdin, stdout},
    time::{Duration, Instant},
};

use crypto_broker::Client;
use serde_json::{Value, json};
use tonic::{
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

const PROFILE: &str = "Default";
const INPUT_SIZE: usize = 32;

/// The fields of cryptobroker.v1.HashDataRequest that a load uses.
#[derive(Clone, PartialEq, prost::Message)]
struct HashDataRequest {
    #[prost(string, tag = "1")]
    profile: String,
    #[prost(bytes = "vec", tag = "2")]
    input: Vec<u8>,
    #[prost(int32, tag = "4")]
    output_format: i32,
}

/// The format of a digest as it is, of cryptobroker.v1.HashOutputFormat.
const RAW: i32 = 2;

/// The field of cryptobroker.v1.HashDataResponse that a load uses.
#[derive(Clone, PartialEq, prost::Message)]
struct HashDataResponse {
    #[prost(bytes = "vec", tag = "3")]
    hash_value_raw: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct HealthRequest {}

#[derive(Clone, PartialEq, prost::Message)]
struct HealthResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// What makes calls.
#[derive(Clone)]
struct Callers {
    plain: Channel,
    unary: Client,
    exchange: Client,
}

impl Callers {
    fn new() -> Result<Callers, Box<dyn std::error::Error>> {
        let socket = std::env::var("CRYPTO_BROKER_SOCKET")?;
        Ok(Callers {
            plain: Endpoint::from_shared(format!("unix:{socket}"))?.connect_lazy(),
            unary: Client::builder().without_exchange().build()?,
            exchange: Client::builder().build()?,
        })
    }

    async fn bare<Q, A>(&self, path: &'static str, request: Q) -> Result<A, String>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let mut grpc = Grpc::new(self.plain.clone());
        grpc.ready().await.map_err(|error| error.to_string())?;
        let (path, codec) = (PathAndQuery::from_static(path), ProstCodec::default());
        let reply = grpc.unary(tonic::Request::new(request), path, codec).await;
        Ok(reply.map_err(|error| error.to_string())?.into_inner())
    }

    async fn call(&self, call: &str) -> Result<(), String> {
        match call {
            "bare HashData" => {
                let (profile, input) = (PROFILE.to_owned(), vec![0; INPUT_SIZE]);
                let request = HashDataRequest {
                    profile,
                    input,
                    output_format: RAW,
                };
                let path = "/cryptobroker.v1.CryptoService/HashData";
                let reply: HashDataResponse = self.bare(path, request).await?;
                assert_eq!(reply.hash_value_raw.len(), 32, "the digest of SHA-256");
            }
            "bare Health" => {
                let _: HealthResponse = self
                    .bare("/grpc.health.v1.Health/Check", HealthRequest {})
                    .await?;
            }
            "unary HashData" => hash(&self.unary).await?,
            "exchange HashData" => hash(&self.exchange).await?,
            "unary Health" => {
                self.unary
                    .health()
                    .await
                    .map_err(|error| error.to_string())?;
            }
            other => panic!("found the load {other:?}, expected one of the README"),
        }
        Ok(())
    }
}

async fn hash(client: &Client) -> Result<(), String> {
    let call = client.hash_data(vec![0; INPUT_SIZE]).profile(PROFILE);
    call.await.map(|_| ()).map_err(|error| error.to_string())
}

/// Makes a load: each caller begins its next call when it has its reply.
async fn measure(callers: &Callers, load: &Value) -> Value {
    let name = format!("{} {}", text(load, "way"), text(load, "operation"));
    let began = Instant::now();
    let end = began + Duration::from_millis(load["millis"].as_u64().unwrap_or_default());
    let tasks: Vec<_> = (0..load["callers"].as_u64().unwrap_or_default())
        .map(|_| {
            let (callers, name) = (callers.clone(), name.clone());
            tokio::spawn(async move {
                let (mut times, mut errors, mut now) = (Vec::new(), Vec::new(), Instant::now());
                loop {
                    if let Err(error) = callers.call(&name).await {
                        errors.push(error);
                    }
                    let after = Instant::now();
                    times.push(after - now);
                    now = after;
                    if now >= end {
                        return (times, errors);
                    }
                }
            })
        })
        .collect();
    let (mut times, mut errors) = (Vec::new(), Vec::new());
    for task in tasks {
        let (t, e) = task.await.expect("a caller does not panic");
        times.extend(t);
        errors.extend(e);
    }
    let took = began.elapsed().as_secs_f64();
    times.sort();
    let done = times.len() - errors.len();
    let mut line = json!({
        "done": done, "failed": errors.len(), "perSecond": done as f64 / took,
        "p50": percentile(&times, 50), "p99": percentile(&times, 99),
    });
    if let Some(error) = errors.first() {
        line["error"] = error.as_str().into();
    }
    line
}

/// Returns a percentile of sorted times, in microseconds.
fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    sorted
        .get(sorted.len() * percent / 100)
        .map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

fn text<'a>(load: &'a Value, name: &str) -> &'a str {
    load[name].as_str().unwrap_or_default()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let callers = Callers::new()?;
    for line in stdin().lock().lines() {
        println!(
            "{}",
            measure(&callers, &serde_json::from_str(&line?)?).await
        );
        stdout().flush()?;
    }
    Ok(())
}
