// SPDX-License-Identifier: Apache-2.0

//! What happens when brokers are away, are slow or end.

mod common;

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use common::{Broker, LIMIT};
use crypto_broker::{Client, Code};

/// Runs a test with the stream for many calls and without it.
async fn both<F: Future<Output = ()>>(test: impl Fn(bool) -> F) {
    test(true).await;
    test(false).await;
}

fn client(broker: &Broker, exchange: bool) -> Client {
    let builder = broker.builder().profile("Default");
    if exchange { builder } else { builder.without_exchange() }.build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_may_start_later_than_the_first_call() {
    both(|exchange| async move {
        let mut broker = Broker::new();
        let client = client(&broker, exchange);
        let first = tokio::spawn({
            let client = client.clone();
            async move { client.hash_data("x").await }
        });
        assert_eq!(client.health().await.unwrap_err().code, Code::Unavailable);
        broker.start();
        first.await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_while_the_broker_is_killed_again_and_again() {
    both(|exchange| async move {
        let mut broker = Broker::serving().await;
        let client = client(&broker, exchange);
        let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let callers: Vec<_> = (0..16)
            .map(|_| {
                let (client, stop, made) = (client.clone(), stop.clone(), made.clone());
                tokio::spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        client.hash_data("x").await.unwrap();
                        made.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for _ in 0..3 {
            let before = made.load(Ordering::Relaxed);
            while made.load(Ordering::Relaxed) < before + 100 {
                tokio::task::yield_now().await;
                assert!(!callers.iter().any(|caller| caller.is_finished()), "a caller has failed");
            }
            broker.kill();
            broker.start();
        }
        stop.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_gives_up_after_its_budget_and_says_so() {
    both(|exchange| async move {
        let builder = Client::builder().socket("/nowhere/s").retry_budget(Duration::from_millis(100));
        let client = if exchange { builder } else { builder.without_exchange() }.build().unwrap();
        let error = client.hash_data("x").profile("P").await.unwrap_err();
        assert!(error.code == Code::Unavailable && error.retry_budget_spent, "{error}");
        assert!(error.reason.contains("/nowhere/s") && error.reason.contains("given up after"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_call_to_a_broker_that_does_not_answer_ends_at_its_time() {
    both(|exchange| async move {
        let broker = Broker::serving().await;
        let client = client(&broker, exchange);
        client.hash_data("x").await.unwrap();
        broker.pause();
        let error = client.hash_data("x").timeout(Duration::from_millis(200)).await.unwrap_err();
        assert_eq!(error.code, Code::DeadlineExceeded, "{error}");
        broker.resume();
        client.hash_data("x").await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn calls_that_are_dropped_do_not_stand_in_the_way_of_others() {
    both(|exchange| async move {
        let broker = Broker::serving().await;
        let client = client(&broker, exchange);
        client.hash_data("x").await.unwrap();
        broker.pause();
        for _ in 0..2000 {
            // Each call is polled once, so that it is sent, and then given up.
            let _ = tokio::time::timeout(Duration::ZERO, client.hash_data("x").into_future()).await;
        }
        broker.resume();
        client.hash_data("x").timeout(LIMIT).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_end_of_the_runtime_of_the_first_call_does_not_stop_others() {
    both(|exchange| async move {
        let broker = Broker::serving().await;
        let client = client(&broker, exchange);
        let first = client.clone();
        let call = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(first.hash_data("x").into_future()).unwrap();
        };
        tokio::task::spawn_blocking(call).await.unwrap();
        client.hash_data("x").timeout(LIMIT).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_programs_of_the_readme_run_as_they_are_written() {
    let broker = Broker::serving().await;
    let tests = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--doc", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CRYPTO_BROKER_SOCKET", broker.socket())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&tests.stdout).into_owned() + &String::from_utf8_lossy(&tests.stderr);
    assert!(tests.status.success() && said.contains("4 passed"), "{said}");
}
