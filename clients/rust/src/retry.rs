// SPDX-License-Identifier: Apache-2.0

use std::{
    future::Future,
    time::{Duration, Instant},
};

use crate::error::{Code, Failure};

/// The longest wait before the second try, and before any other.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The time of one call with all its tries.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// For how long after its begin a call is tried again.
    pub budget: Duration,
    /// When the call has to end.
    pub deadline: Option<Instant>,
}

impl Limits {
    /// Returns how long the call may still take.
    pub fn left(&self) -> Option<Duration> {
        self.deadline.map(|at| at.saturating_duration_since(Instant::now()))
    }
}

/// Tries until a try succeeds or fails for good, or there is no time for another try.
pub(crate) async fn tries<T, F: Future<Output = Result<T, Failure>>>(
    limits: Limits,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Failure> {
    let began = Instant::now();
    let mut last: Option<String> = None;
    for count in 1.. {
        let failure = match within(limits, attempt()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(failure)) => failure,
            Err(()) => return Err(too_late(last)),
        };
        if !failure.transient() {
            return Err(failure);
        }
        let wait = jittered(count);
        let took = began.elapsed();
        if took + wait > limits.budget {
            return Err(spent(failure, count, took));
        }
        last = Some(failure.reason);
        if within(limits, tokio::time::sleep(wait)).await.is_err() {
            return Err(too_late(last));
        }
    }
    unreachable!("there are more tries than a u32 counts")
}

/// Waits for a future up to the deadline.
async fn within<F: Future>(limits: Limits, future: F) -> Result<F::Output, ()> {
    match limits.deadline {
        None => Ok(future.await),
        Some(at) => tokio::time::timeout_at(at.into(), future).await.map_err(|_| ()),
    }
}

fn too_late(last: Option<String>) -> Failure {
    let mut reason = "there was no reply within the time for the call".to_owned();
    if let Some(last) = last {
        reason += "; the last try: ";
        reason += &last;
    }
    Failure::new(Code::DeadlineExceeded, reason)
}

fn spent(mut failure: Failure, count: u32, took: Duration) -> Failure {
    let times = if count == 1 { "1 try".to_owned() } else { format!("{count} tries") };
    failure.reason += &format!(" (given up after {times} in {} ms)", took.as_millis());
    failure.spent = true;
    failure
}

/// Returns how long to wait after this many tries. It is a random time, so that many callers do not try again at the same
/// moment. The longest time doubles with each try.
fn jittered(tries: u32) -> Duration {
    let most = LONGEST_WAIT.min(FIRST_WAIT * 2u32.pow((tries - 1).min(7)));
    Duration::from_nanos(fastrand::u64(1..=most.as_nanos() as u64))
}
