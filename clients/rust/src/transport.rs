// SPDX-License-Identifier: Apache-2.0

use std::{
    error::Error as _,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::net::UnixStream;
use tonic::{
    Status,
    client::Grpc,
    transport::{Channel, Endpoint, Uri},
};

use crate::{
    error::{Code, Failure},
    raw::Raw,
};

/// The size of windows in bytes.
const WINDOW: u32 = 1 << 20;
/// The size in bytes of the largest message that the client reads. A broker sends messages of up to 4 MiB.
const LARGEST_REPLY: usize = 8 << 20;
/// How long a new connection may take until the broker has answered.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long calls wait for a broker that does not run any more. A broker that runs may read nothing of a connection for a
/// minute, while other clients use all memory of its caller.
const PING_AFTER: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(70);

/// The connection to a broker. It is made at the first call, and again after it broke.
#[derive(Clone)]
pub(crate) struct Transport {
    channel: Channel,
    socket: PathBuf,
    /// How many connections were made.
    connections: Arc<AtomicU64>,
}

impl Transport {
    pub fn new(socket: PathBuf) -> Transport {
        let connections = Arc::new(AtomicU64::new(0));
        let (path, made) = (socket.clone(), connections.clone());
        let connector = tower::service_fn(move |_: Uri| {
            let (path, made) = (path.clone(), made.clone());
            async move {
                let stream = UnixStream::connect(path).await?;
                made.fetch_add(1, Ordering::Relaxed);
                Ok::<_, io::Error>(TokioIo::new(stream))
            }
        });
        let channel = Endpoint::from_static("http://localhost")
            .user_agent("crypto-broker-rust")
            .expect("the name of the client is a valid header")
            .connect_timeout(CONNECT_TIME)
            .initial_connection_window_size(WINDOW)
            .initial_stream_window_size(WINDOW)
            .http2_keep_alive_interval(PING_AFTER)
            .keep_alive_timeout(PING_TIMEOUT)
            .connect_with_connector_lazy(connector);
        Transport { channel, socket, connections }
    }

    /// Returns the number of the current connection.
    pub fn connection(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    pub fn grpc(&self) -> Grpc<Channel> {
        Grpc::new(self.channel.clone()).max_decoding_message_size(LARGEST_REPLY)
    }

    /// Makes a unary call once.
    pub async fn unary<A: Message + Default>(
        &self,
        path: &'static str,
        request: Vec<u8>,
        left: Option<Duration>,
    ) -> Result<A, Failure> {
        let mut grpc = self.grpc();
        grpc.ready().await.map_err(|error| self.unreachable(&error))?;
        let codec = Raw { request_size: request.len() };
        let mut request = tonic::Request::new(request);
        if let Some(left) = left {
            request.set_timeout(left);
        }
        match grpc.unary(request, PathAndQuery::from_static(path), codec).await {
            Ok(reply) => A::decode(reply.into_inner())
                .map_err(|error| Failure::new(Code::Internal, format!("the reply cannot be read: {error}"))),
            Err(status) => Err(self.failure(&status)),
        }
    }

    /// Returns the failure of a status, which is the broker's or is about the connection.
    pub fn failure(&self, status: &Status) -> Failure {
        match status.source() {
            // The broker has said this.
            None => Failure::new(Code::from_number(status.code() as i32), status.message()),
            Some(source) if is_timeout(source) => {
                Failure::new(Code::DeadlineExceeded, "there was no reply within the time for the call")
            }
            Some(source) => self.unreachable(source),
        }
    }

    fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> Failure {
        let mut deepest = error;
        while let Some(source) = deepest.source() {
            deepest = source;
        }
        Failure::new(Code::Unavailable, format!("{deepest} (socket {})", self.socket.display()))
    }
}

/// Reports whether an error says that the time of a call has passed.
fn is_timeout(mut error: &(dyn std::error::Error + 'static)) -> bool {
    loop {
        if error.is::<tonic::TimeoutExpired>() {
            return true;
        }
        match error.source() {
            Some(source) => error = source,
            None => return false,
        }
    }
}
