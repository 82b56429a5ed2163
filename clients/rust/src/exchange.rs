// SPDX-License-Identifier: Apache-2.0

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use http::uri::PathAndQuery;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tonic::{Streaming, client::Grpc, transport::Channel};
use tonic_prost::ProstCodec;

use crate::{
    error::{Code, Failure},
    transport::Transport,
    wire::stream::v1::{Call, ExchangeRequest, ExchangeResponse, call, reply},
};

const PATH: &str = "/cryptobroker.stream.v1.StreamService/Exchange";
/// How many calls may wait for their replies at one time.
const MOST_CALLS: usize = 1024;
/// How many calls a message has at most. Each has up to 16 KiB, and a broker takes messages of up to 4 MiB.
const MOST_IN_MESSAGE: usize = 128;

/// The streams of a client. A new stream replaces one that has ended.
pub(crate) struct Exchanges {
    current: Mutex<Option<Arc<Exchange>>>,
    slots: Arc<Semaphore>,
    /// The number of a connection whose broker does not have the stream, 0 for none.
    without: Arc<AtomicU64>,
}

impl Default for Exchanges {
    fn default() -> Self {
        Exchanges { current: Mutex::default(), slots: Arc::new(Semaphore::new(MOST_CALLS)), without: Arc::default() }
    }
}

impl Exchanges {
    /// Makes a call on the stream. It returns `None` if the call has to be made without the stream.
    pub async fn call(
        &self,
        transport: &Transport,
        request: call::Request,
        left: Option<Duration>,
    ) -> Result<Option<reply::Result>, Failure> {
        let without = self.without.load(Ordering::Relaxed);
        if without != 0 && without == transport.connection() {
            return Ok(None);
        }
        let slot = self.slots.clone().acquire_owned().await.expect("nobody closes it");
        let timeout_millis = left.map_or(0, |left| left.as_millis().clamp(1, u32::MAX.into()) as u32);
        let mut ticket = self.add(transport, request, timeout_millis, slot);
        // The sender is dropped only after it has sent.
        let result = (&mut ticket.reply).await.unwrap_or(Err(Ended::Failed(Code::Unavailable, "the stream has ended".into())));
        ticket.answered = true;
        match result {
            // The broker may have the operation as a unary call only.
            Ok(reply::Result::Status(status)) if Code::from_number(status.code) == Code::Unimplemented => Ok(None),
            Ok(reply::Result::Status(status)) => Err(Failure::new(Code::from_number(status.code), status.message)),
            Ok(result) => Ok(Some(result)),
            Err(Ended::Again) => Ok(None),
            Err(Ended::Failed(code, reason)) => Err(Failure::new(code, reason)),
        }
    }

    /// Puts a call on the current stream, or else on a new one.
    fn add(&self, transport: &Transport, request: call::Request, timeout_millis: u32, slot: OwnedSemaphorePermit) -> Ticket {
        let mut current = self.current.lock().expect("nothing panics with this lock");
        let mut call = Call { id: 0, timeout_millis, request: Some(request) };
        let mut slot = slot;
        if let Some(exchange) = &*current {
            match exchange.add(call, slot) {
                Ok(ticket) => return ticket,
                Err(back) => (call, slot) = *back,
            }
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        let exchange = Arc::new(Exchange { sender, pending: Arc::default() });
        // The stream has its first call before it begins, so that it has not ended by then.
        let Ok(ticket) = exchange.add(call, slot) else { unreachable!("a stream that has not begun has not ended") };
        self.begin(transport, exchange.pending.clone(), receiver);
        *current = Some(exchange);
        ticket
    }

    /// Begins a stream.
    fn begin(&self, transport: &Transport, pending: Arc<Mutex<Pending>>, receiver: mpsc::UnboundedReceiver<Item>) {
        let (transport, without) = (transport.clone(), self.without.clone());
        let pending = Ends(pending);
        tokio::spawn(async move {
            let ended = match serve(transport.grpc(), receiver, &pending.0).await {
                Ok(()) => Ended::Failed(Code::Unavailable, "the broker shuts down".into()),
                Err(status) if status.code() == tonic::Code::Unimplemented => {
                    without.store(transport.connection(), Ordering::Relaxed);
                    Ended::Again
                }
                Err(status) => {
                    let failure = transport.failure(&status);
                    match failure.code {
                        Code::Unavailable | Code::DeadlineExceeded | Code::Canceled => {
                            Ended::Failed(Code::Unavailable, failure.reason)
                        }
                        _ => Ended::Again,
                    }
                }
            };
            lock(&pending.0).end(&ended);
        });
    }
}

/// Ends the calls of a stream with its task, which the runtime may drop at any time.
struct Ends(Arc<Mutex<Pending>>);

impl Drop for Ends {
    fn drop(&mut self) {
        lock(&self.0).end(&Ended::Failed(Code::Unavailable, "the stream has ended".into()));
    }
}

/// Sends calls and gives replies to them until the stream ends.
async fn serve(
    mut grpc: Grpc<Channel>,
    receiver: mpsc::UnboundedReceiver<Item>,
    pending: &Mutex<Pending>,
) -> Result<(), tonic::Status> {
    grpc.ready().await.map_err(|error| tonic::Status::from_error(error.into()))?;
    let codec = ProstCodec::<ExchangeRequest, ExchangeResponse>::default();
    let request = tonic::Request::new(Batches { receiver, items: Vec::new() });
    let mut replies: Streaming<ExchangeResponse> =
        grpc.streaming(request, PathAndQuery::from_static(PATH), codec).await?.into_inner();
    while let Some(message) = replies.message().await? {
        let mut pending = lock(pending);
        for reply in message.replies {
            let Some(waiting) = pending.calls.remove(&reply.id) else { continue };
            if let Some(sender) = waiting.reply {
                // A newer broker may have a result that this client does not know. Nobody may wait any more.
                let _ = sender.send(reply.result.ok_or(Ended::Again));
            }
        }
        if message.go_away.is_some() {
            return Ok(());
        }
    }
    Ok(())
}

/// One stream that many calls share.
struct Exchange {
    sender: mpsc::UnboundedSender<Item>,
    pending: Arc<Mutex<Pending>>,
}

enum Item {
    Call(Box<Call>),
    /// Nobody waits for this call any more.
    GivenUp(u64),
}

/// The calls without a reply.
#[derive(Default)]
struct Pending {
    last: u64,
    ended: bool,
    calls: HashMap<u64, Waiting>,
}

struct Waiting {
    /// It is `None` if nobody waits any more.
    reply: Option<oneshot::Sender<Result<reply::Result, Ended>>>,
    /// The broker serves a call that was given up, so that the call keeps its slot until its reply comes.
    _slot: OwnedSemaphorePermit,
}

#[derive(Clone)]
enum Ended {
    /// Each call is made as a unary call and gets its own answer, because one of them may have caused the end.
    Again,
    Failed(Code, String),
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().expect("nothing panics with this lock")
}

impl Pending {
    fn end(&mut self, why: &Ended) {
        self.ended = true;
        for (_, waiting) in self.calls.drain() {
            if let Some(reply) = waiting.reply {
                let _ = reply.send(Err(why.clone())); // nobody may wait any more
            }
        }
    }
}

impl Exchange {
    /// Puts a call on the stream. It gives the call back if the stream has ended.
    fn add(self: &Arc<Self>, mut call: Call, slot: OwnedSemaphorePermit) -> Result<Ticket, Box<(Call, OwnedSemaphorePermit)>> {
        let mut pending = lock(&self.pending);
        if pending.ended {
            return Err(Box::new((call, slot)));
        }
        pending.last += 1;
        call.id = pending.last;
        let (sender, reply) = oneshot::channel();
        pending.calls.insert(call.id, Waiting { reply: Some(sender), _slot: slot });
        let ticket = Ticket { exchange: self.clone(), id: call.id, reply, answered: false };
        let _ = self.sender.send(Item::Call(Box::new(call))); // a stream that ends says so to all that are pending
        Ok(ticket)
    }
}

/// A call that waits for its reply. Dropping it gives the call up.
struct Ticket {
    exchange: Arc<Exchange>,
    id: u64,
    reply: oneshot::Receiver<Result<reply::Result, Ended>>,
    answered: bool,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        if let Some(waiting) = lock(&self.exchange.pending).calls.get_mut(&self.id) {
            waiting.reply = None;
            let _ = self.exchange.sender.send(Item::GivenUp(self.id)); // the stream may end
        }
    }
}

/// The messages of a stream. Each has what waits at that time.
struct Batches {
    receiver: mpsc::UnboundedReceiver<Item>,
    items: Vec<Item>,
}

impl Stream for Batches {
    type Item = ExchangeRequest;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ExchangeRequest>> {
        let this = &mut *self;
        if ready!(this.receiver.poll_recv_many(context, &mut this.items, MOST_IN_MESSAGE)) == 0 {
            return Poll::Ready(None);
        }
        let mut message = ExchangeRequest::default();
        for item in this.items.drain(..) {
            match item {
                Item::Call(call) => message.calls.push(*call),
                Item::GivenUp(id) => message.given_up.push(id),
            }
        }
        Poll::Ready(Some(message))
    }
}
