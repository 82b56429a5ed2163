// SPDX-License-Identifier: Apache-2.0

//! What calls return, and why they fail.

mod common;

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
};

use common::Broker;
use crypto_broker::{Client, Code, Error, Health, Key, TraceContext};
use tokio::io::{AsyncRead, ReadBuf};

#[tokio::test]
async fn a_broker_that_serves_is_healthy_and_hashes() {
    let broker = Broker::serving().await;
    let client = broker.client();
    assert_eq!(client.health().await.unwrap(), Health::Serving);
    let hashed = client.hash_data("abc").profile("Default").await.unwrap();
    assert_eq!(hashed.algorithm, "sha-256");
    assert_eq!(hashed.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

#[tokio::test]
async fn errors_say_what_was_wrong_with_which_operation_and_profile() {
    let broker = Broker::serving().await;
    let client = broker.builder().profile("Orders").build().unwrap();
    type Case<'a> = (&'a str, Result<(), Error>, Code, &'a str, &'a str);
    let cases: [Case; 4] = [
        (
            "a key that is not there",
            client.encrypt_data(Key::id("nobody"), "x").await.map(drop),
            Code::NotFound,
            "EncryptData",
            "Orders",
        ),
        (
            "a key that the profile does not list",
            client.encrypt_data(Key::id("other"), "x").await.map(drop),
            Code::PermissionDenied,
            "EncryptData",
            "Orders",
        ),
        (
            "an operation that the profile does not offer",
            client.hash_data("x").await.map(drop),
            Code::NotServed,
            "HashData",
            "Orders",
        ),
        (
            "a profile that is not there",
            client.hash_data("x").profile("None").await.map(drop),
            Code::InvalidArgument,
            "HashData",
            "None",
        ),
    ];
    for (sentence, result, code, operation, profile) in cases {
        let error = result.expect_err(sentence);
        assert_eq!((error.code, error.operation, error.profile.as_str()), (code, operation, profile), "{sentence}: {error}");
        assert!(error.reason.starts_with(operation) && !error.retry_budget_spent, "{sentence}: {error}");
    }
}

#[tokio::test]
async fn a_request_that_no_broker_takes_is_not_sent() {
    let client = Client::builder().socket("/nowhere").build().unwrap();
    let error = client.hash_data(vec![0; 5 << 20]).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument, "{error}");
    assert!(error.reason.contains("expected at most 4194304"), "{error}");
}

#[tokio::test]
async fn an_empty_path_of_a_socket_is_refused() {
    assert_eq!(Client::builder().socket("").build().unwrap_err().code, Code::InvalidArgument);
}

#[tokio::test]
async fn the_warning_of_a_deprecated_profile_is_in_each_result_and_told_once() {
    let broker = Broker::serving().await;
    let told = Arc::new(AtomicU32::new(0));
    let count = told.clone();
    let client = broker
        .builder()
        .on_deprecation(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .unwrap();
    for _ in 0..3 {
        let warning = client.hash_data("x").profile("Old").await.unwrap().deprecation.expect("a warning");
        assert_eq!((warning.replaced_by.as_str(), warning.reason.as_str()), ("Default", "It is long."));
    }
    assert_eq!(told.load(Ordering::Relaxed), 1);
    assert_eq!(client.hash_data("x").profile("Default").await.unwrap().deprecation, None);
}

#[tokio::test]
async fn a_call_has_the_trace_of_its_caller() {
    let broker = Broker::serving().await;
    let (of_client, of_call) = ("4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c");
    let span = "00f067aa0ba902b7";
    let client =
        broker.builder().profile("Default").trace_context(move || Some(TraceContext::new(of_client, span))).build().unwrap();
    client.hash_data("x").await.unwrap();
    client.hash_data("x").trace(TraceContext::new(of_call, span)).await.unwrap();
    let written = || std::fs::read_to_string(broker.audit_file()).unwrap();
    while !(written().contains(of_client) && written().contains(of_call)) {
        tokio::task::yield_now().await; // the broker writes records beside its calls
    }
}

#[test]
fn debug_output_has_no_secrets() {
    assert_eq!(format!("{:?}", Key::raw(*b"0123456789abcdef")), "Raw([16 octets])");
}

#[tokio::test]
async fn plaintexts_and_data_keys_are_not_in_debug_output() {
    let broker = Broker::serving().await;
    let client = broker.client();
    let sealed = client.encrypt_data(Key::id("orders"), "4711 boxes").profile("Orders").await.unwrap();
    let opened =
        client.decrypt_data(Key::id("orders"), sealed.ciphertext, sealed.nonce).tag(sealed.tag).profile("Orders").await.unwrap();
    assert_eq!(opened.plaintext, b"4711 boxes");
    assert_eq!(format!("{opened:?}"), "Decrypted { plaintext: [10 octets], deprecation: None }");
    let made = client.generate_data_key("orders").context("a").profile("Data").await.unwrap();
    assert!(format!("{made:?}").contains("data_key: [32 octets]"), "{made:?}");
    let again = client.unwrap_key(made.wrapped_key).context("a").profile("Data").await.unwrap();
    assert_eq!(again.data_key, made.data_key);
}

#[tokio::test]
async fn streams_of_any_size_come_back_as_they_were() {
    let broker = Broker::serving().await;
    let client = broker.client();
    for size in [0, 1, 64 << 10, (64 << 10) + 1, 3_000_000] {
        let plaintext: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
        let (mut sealed, mut opened) = (Vec::new(), Vec::new());
        client.encrypt_stream("orders").profile("Data").context("c").run(&plaintext[..], &mut sealed).await.unwrap();
        let end = client.decrypt_stream().profile("Data").context("c").run(&sealed[..], &mut opened).await.unwrap();
        assert!(opened == plaintext && sealed.len() > size && !end.algorithm.is_empty(), "{size} octets");
        let whole = client.hash_stream().profile("Default").run(&plaintext[..]).await.unwrap();
        if size <= 1 << 20 {
            assert_eq!(whole, client.hash_data(plaintext).profile("Default").await.unwrap(), "{size} octets");
        }
        if size > 0 {
            let error = client
                .decrypt_stream()
                .profile("Data")
                .context("c")
                .run(&sealed[..sealed.len() - 1], &mut Vec::new())
                .await
                .unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{size} octets, cut: {error}");
        }
    }
}

/// An input that fails after so many octets.
struct Failing(usize);

impl AsyncRead for Failing {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.0 == 0 {
            return Poll::Ready(Err(io::Error::other("the tape is torn")));
        }
        let size = self.0.min(buffer.remaining());
        buffer.put_slice(&vec![0; size]);
        self.0 -= size;
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn an_input_that_fails_is_the_source_of_the_error_and_no_end() {
    let broker = Broker::serving().await;
    let client = broker.client();
    for octets in [10, 300_000] {
        let mut output = Vec::new();
        let error = client.encrypt_stream("orders").profile("Data").run(Failing(octets), &mut output).await.unwrap_err();
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the tape is torn");
        let error = client.hash_stream().profile("Default").run(Failing(octets)).await.unwrap_err();
        assert_eq!((error.code, error.operation), (Code::Unknown, "HashData"), "{error}");
    }
}

#[tokio::test]
async fn a_session_begins_and_ends_and_refuses_what_no_client_has_sealed() {
    let broker = Broker::serving().await;
    let client = broker.builder().profile("Shop").build().unwrap();
    let error = client.init_session("no key").key_agreement("ECDH_P256").await.unwrap_err();
    assert_eq!((error.code, error.operation), (Code::InvalidArgument, "InitSession"), "{error}");
    let error = client.open_request("POST", "/orders", "x").header("X-Kid", "nobody").header("X-Other", "").await.unwrap_err();
    assert_eq!(error.operation, "OpenRequest", "{error}");
    client.close_session("0123456789abcdef0123456789abcdef").await.unwrap_or_else(|error| {
        assert_eq!(error.code, Code::InvalidArgument, "{error}"); // an id of another form
    });
}
