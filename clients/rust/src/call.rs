// SPDX-License-Identifier: Apache-2.0

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use prost::Message;

use crate::{
    client::Client,
    error::{Code, Error, Failure},
    results::{Deprecation, TraceContext},
    retry,
    wire::{
        stream::v1::{call, reply},
        v1,
    },
};

/// The size in bytes of the largest request that the client sends. Brokers refuse larger ones.
const LARGEST_REQUEST: usize = 4 << 20;
/// The size in bytes of the largest request that shares a stream with others, which it would delay.
const LARGEST_EXCHANGED: usize = 16 << 10;

/// An operation of the broker. This trait cannot be implemented outside of this crate.
pub trait Operation: Send + Sync + 'static {
    #[doc(hidden)]
    type Request: Message + Clone + 'static;
    #[doc(hidden)]
    type Reply: Message + Default + 'static;
    /// What a call returns.
    type Output: Send;
    #[doc(hidden)]
    const NAME: &'static str;
    #[doc(hidden)]
    const PATH: &'static str;

    #[doc(hidden)]
    fn into_request(self, profile: String, metadata: Option<v1::Metadata>) -> Self::Request;
    /// Returns the request for a stream of many calls, if it carries this operation.
    #[doc(hidden)]
    fn exchanged(request: &Self::Request) -> Option<call::Request>;
    #[doc(hidden)]
    fn answered(result: reply::Result) -> Option<Self::Reply>;
    /// Returns what the reply to a request has, or the name of what it lacks.
    #[doc(hidden)]
    fn read(request: &Self::Request, reply: Self::Reply, client: &Client) -> Result<Self::Output, &'static str>;
}

/// A call that is made when it is awaited.
#[must_use = "a call is made when it is awaited"]
pub struct Call<O> {
    client: Client,
    pub(crate) operation: O,
    profile: Option<String>,
    timeout: Option<Duration>,
    trace: Option<TraceContext>,
}

impl<O: Operation> Call<O> {
    pub(crate) fn new(client: Client, operation: O) -> Self {
        Call { client, operation, profile: None, timeout: None, trace: None }
    }

    /// Names the profile, instead of the profile of the client.
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.profile = Some(name.into());
        self
    }

    /// Bounds the time of the call with all its tries, instead of the time of the client.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// Sets the trace that the call belongs to.
    pub fn trace(mut self, context: TraceContext) -> Self {
        self.trace = Some(context);
        self
    }

    async fn make(self) -> Result<O::Output, Error> {
        let client = self.client;
        let profile = self.profile.unwrap_or_else(|| client.inner.settings.profile.clone());
        let request = self.operation.into_request(profile.clone(), metadata_of(self.trace.or_else(|| client.trace())));
        let size = request.encoded_len();
        if size > LARGEST_REQUEST {
            let reason = format!("the request has {size} bytes, expected at most {LARGEST_REQUEST}");
            return Err(Failure::new(Code::InvalidArgument, reason).into_error(O::NAME, &profile));
        }
        let limits = client.limits(self.timeout);
        let (inner, request) = (&client.inner, &request);
        let exchanged = inner.settings.exchange && size <= LARGEST_EXCHANGED;
        let attempt = || async move {
            if exchanged && let Some(call) = O::exchanged(request) {
                let left = limits.left();
                if let Some(result) = inner.exchanges.call(&inner.transport, call, left).await? {
                    return O::answered(result).ok_or_else(|| lacking("result of the operation"));
                }
            }
            inner.transport.unary(O::PATH, request.encode_to_vec(), limits.left()).await
        };
        let reply = retry::tries(limits, attempt).await.map_err(|f| f.into_error(O::NAME, &profile))?;
        O::read(request, reply, &client).map_err(|what| lacking(what).into_error(O::NAME, &profile))
    }
}

pub(crate) fn lacking(what: &str) -> Failure {
    Failure::new(Code::Internal, format!("the reply has no {what}"))
}

pub(crate) fn metadata_of(trace: Option<TraceContext>) -> Option<v1::Metadata> {
    trace.map(|trace| v1::Metadata { trace_context: Some(trace.into()), ..Default::default() })
}

/// Returns the warning of a reply, and tells the listener.
pub(crate) fn warning_of(client: &Client, metadata: Option<v1::Metadata>) -> Option<Deprecation> {
    let warning = metadata.and_then(|m| m.deprecation).map(Deprecation::from);
    client.warn(&warning);
    warning
}

impl<O: Operation> IntoFuture for Call<O> {
    type Output = Result<O::Output, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.make())
    }
}
