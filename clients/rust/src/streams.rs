// SPDX-License-Identifier: Apache-2.0

use std::{
    io,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use http::uri::PathAndQuery;
use prost::Message;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{Mutex, mpsc},
};
use tonic_prost::ProstCodec;

use crate::{
    call::{lacking, metadata_of, warning_of},
    client::{Client, Inner},
    error::{Code, Error, Failure},
    results::{Digest, StreamResult, TraceContext},
    retry,
    wire::{stream::v1 as wire, v1},
};

/// How many bytes of an input a message has. A broker takes up to 1 MiB for a digest, and no more than 64 KiB for a cipher.
const HASH_CHUNK: usize = 256 << 10;
const CIPHER_CHUNK: usize = 64 << 10;

/// What the calls of streams have in common.
struct Settings {
    client: Client,
    profile: Option<String>,
    timeout: Option<Duration>,
    trace: Option<TraceContext>,
}

impl Settings {
    fn new(client: &Client) -> Settings {
        Settings { client: client.clone(), profile: None, timeout: None, trace: None }
    }

    fn profile(&self) -> String {
        self.profile.clone().unwrap_or_else(|| self.client.inner.settings.profile.clone())
    }

    fn metadata(&self) -> Option<v1::Metadata> {
        metadata_of(self.trace.clone().or_else(|| self.client.trace()))
    }
}

/// Adds what is optional for all calls.
macro_rules! options {
    ($name:ident) => {
        impl $name {
            /// Names the profile, instead of the profile of the client.
            pub fn profile(mut self, name: impl Into<String>) -> Self {
                self.settings.profile = Some(name.into());
                self
            }

            /// Bounds the time of the call with all its tries, instead of the time of the client.
            pub fn timeout(mut self, time: Duration) -> Self {
                self.settings.timeout = Some(time);
                self
            }

            /// Sets the trace that the call belongs to.
            pub fn trace(mut self, context: TraceContext) -> Self {
                self.settings.trace = Some(context);
                self
            }
        }
    };
}

options!(HashStream);
options!(CipherStream);

/// A call that computes the digest of an input of any size.
#[must_use = "run makes the call"]
pub struct HashStream {
    settings: Settings,
}

/// A call that encrypts or decrypts data of any size.
#[must_use = "run makes the call"]
pub struct CipherStream {
    settings: Settings,
    /// The id of the wrapping key, to encrypt.
    key_id: Option<String>,
    context: Vec<u8>,
}

impl Client {
    /// Computes the digest of an input of any size: `client.hash_stream().run(input)`.
    pub fn hash_stream(&self) -> HashStream {
        HashStream { settings: Settings::new(self) }
    }

    /// Encrypts data of any size, with a data key that a key of the broker wraps: `client.encrypt_stream(id).run(input, output)`.
    pub fn encrypt_stream(&self, key_id: impl Into<String>) -> CipherStream {
        CipherStream { settings: Settings::new(self), key_id: Some(key_id.into()), context: Vec::new() }
    }

    /// Decrypts what [`Client::encrypt_stream`] has encrypted.
    pub fn decrypt_stream(&self) -> CipherStream {
        CipherStream { settings: Settings::new(self), key_id: None, context: Vec::new() }
    }
}

impl HashStream {
    /// Reads the input to its end. The call is tried again, as other calls are, while at most 256 KiB were read.
    ///
    /// # Errors
    ///
    /// [`Error`]; its source is the error of the input, if that is the reason.
    pub async fn run(self, mut input: impl AsyncRead + Send + Unpin) -> Result<Digest, Error> {
        const NAME: &str = "HashData";
        const PATH: &str = "/cryptobroker.stream.v1.StreamService/HashStream";
        let client = &self.settings.client;
        let profile = self.settings.profile();
        let (first, whole) = read(&mut input, HASH_CHUNK).await.map_err(|e| unread(e).into_error(NAME, &profile))?;
        if whole {
            let mut call = client.hash_data(first).profile(profile);
            if let Some(time) = self.settings.timeout {
                call = call.timeout(time);
            }
            if let Some(trace) = self.settings.trace {
                call = call.trace(trace);
            }
            return call.await;
        }
        let start = wire::HashStreamStart {
            profile: profile.clone(),
            metadata: self.settings.metadata(),
            output_format: v1::HashOutputFormat::Raw.into(),
        };
        use wire::hash_stream_request::Part;
        let start = wire::HashStreamRequest { part: Some(Part::Start(start)) };
        let chunk = |octets| wire::HashStreamRequest { part: Some(Part::Chunk(octets)) };
        let limits = client.limits(self.settings.timeout);
        let source = Mutex::new(Source { input: &mut input, begun: AtomicBool::new(false), size: HASH_CHUNK });
        let (inner, start, first, source) = (&client.inner, &start, &first, &source);
        let attempt = || async move {
            let receive = async |feed| {
                let (mut grpc, request) = open(inner, feed, limits.left()).await?;
                let codec = ProstCodec::<wire::HashStreamRequest, wire::HashStreamResponse>::default();
                let reply = grpc.client_streaming(request, PathAndQuery::from_static(PATH), codec).await;
                reply.map_err(|status| inner.transport.failure(&status)).map(|reply| reply.into_inner())
            };
            source.lock().await.send(start, first.clone(), false, chunk, receive).await
        };
        let reply = retry::tries(limits, attempt).await.map_err(|f| f.into_error(NAME, &profile))?;
        let Some(wire::hash_stream_response::HashValue::HashValueRaw(digest)) = reply.hash_value else {
            return Err(lacking("digest").into_error(NAME, &profile));
        };
        let algorithm = reply.descriptor.map(|d| d.algorithm).unwrap_or_default();
        Ok(Digest { digest, algorithm, deprecation: warning_of(client, reply.metadata) })
    }
}

impl CipherStream {
    /// Sets what the stream is bound to, at most 4 KiB. It is needed again to decrypt.
    pub fn context(mut self, context: impl Into<Vec<u8>>) -> Self {
        self.context = context.into();
        self
    }

    /// Reads the input to its end, and writes the output. The memory of client and broker does not grow with the data. The call
    /// is tried again, as other calls are, while at most 64 KiB were read and nothing was written.
    ///
    /// After an error, the output is not complete: discard it. What was decrypted is authentic, but only the end says that
    /// nothing is missing.
    ///
    /// # Errors
    ///
    /// [`Error`]; its source is the error of the input or the output, if that is the reason.
    pub async fn run(
        self,
        mut input: impl AsyncRead + Send + Unpin,
        mut output: impl AsyncWrite + Send + Unpin,
    ) -> Result<StreamResult, Error> {
        let profile = self.settings.profile();
        let metadata = self.settings.metadata();
        let ends = Ends { input: &mut input, output: &mut output };
        match self.key_id {
            Some(key_id) => {
                use wire::encrypt_stream_request::Part;
                let start = wire::EncryptStreamStart { profile: profile.clone(), key_id, metadata, context: self.context };
                let protocol = Protocol {
                    name: "EncryptStream",
                    path: "/cryptobroker.stream.v1.StreamService/EncryptStream",
                    start: wire::EncryptStreamRequest { part: Some(Part::Start(start)) },
                    chunk: |octets| wire::EncryptStreamRequest { part: Some(Part::Chunk(octets)) },
                    read: |reply: wire::EncryptStreamResponse| {
                        reply.part.map(|part| match part {
                            wire::encrypt_stream_response::Part::Chunk(octets) => Replied::Chunk(octets),
                            wire::encrypt_stream_response::Part::End(end) => Replied::End(Box::new(end)),
                        })
                    },
                };
                protocol.run(&self.settings, &profile, ends).await
            }
            None => {
                use wire::decrypt_stream_request::Part;
                let start = wire::DecryptStreamStart { profile: profile.clone(), metadata, context: self.context };
                let protocol = Protocol {
                    name: "DecryptStream",
                    path: "/cryptobroker.stream.v1.StreamService/DecryptStream",
                    start: wire::DecryptStreamRequest { part: Some(Part::Start(start)) },
                    chunk: |octets| wire::DecryptStreamRequest { part: Some(Part::Chunk(octets)) },
                    read: |reply: wire::DecryptStreamResponse| {
                        reply.part.map(|part| match part {
                            wire::decrypt_stream_response::Part::Chunk(octets) => Replied::Chunk(octets),
                            wire::decrypt_stream_response::Part::End(end) => Replied::End(Box::new(end)),
                        })
                    },
                };
                protocol.run(&self.settings, &profile, ends).await
            }
        }
    }
}

struct Ends<'a, I, O> {
    input: &'a mut I,
    output: &'a mut O,
}

enum Replied {
    Chunk(Vec<u8>),
    End(Box<wire::StreamEnd>),
}

/// How messages of one of the two streams are made and read.
struct Protocol<Q, A> {
    name: &'static str,
    path: &'static str,
    start: Q,
    chunk: fn(Vec<u8>) -> Q,
    read: fn(A) -> Option<Replied>,
}

impl<Q: Message + Clone + 'static, A: Message + Default + 'static> Protocol<Q, A> {
    async fn run<I, O>(self, settings: &Settings, profile: &str, ends: Ends<'_, I, O>) -> Result<StreamResult, Error>
    where
        I: AsyncRead + Send + Unpin,
        O: AsyncWrite + Send + Unpin,
    {
        let client = &settings.client;
        let (first, whole) = read(ends.input, CIPHER_CHUNK).await.map_err(|e| unread(e).into_error(self.name, profile))?;
        let limits = client.limits(settings.timeout);
        let source = Mutex::new(Source { input: ends.input, begun: AtomicBool::new(false), size: CIPHER_CHUNK });
        let output = Mutex::new(ends.output);
        let (inner, protocol, first, source, output) = (&client.inner, &self, &first, &source, &output);
        let attempt = || async move {
            let mut source = source.lock().await;
            let written = AtomicBool::new(false);
            let result = {
                let written = &written;
                let receive = async |feed| {
                    let (mut grpc, request) = open(inner, feed, limits.left()).await?;
                    let failed = |status: tonic::Status| inner.transport.failure(&status);
                    let path = PathAndQuery::from_static(protocol.path);
                    let mut replies =
                        grpc.streaming(request, path, ProstCodec::<Q, A>::default()).await.map_err(failed)?.into_inner();
                    let mut output = output.lock().await;
                    let mut end = None;
                    while let Some(reply) = replies.message().await.map_err(failed)? {
                        match (protocol.read)(reply) {
                            Some(Replied::Chunk(octets)) => {
                                written.store(true, Ordering::Relaxed);
                                output.write_all(&octets).await.map_err(unwritten)?;
                            }
                            Some(Replied::End(last)) => end = Some(*last),
                            None => {}
                        }
                    }
                    let end = end.ok_or_else(|| lacking("end"))?;
                    output.flush().await.map_err(unwritten)?;
                    Ok(end)
                };
                source.send(&protocol.start, first.clone(), whole, protocol.chunk, receive).await
            };
            result.map_err(|mut failure: Failure| {
                if written.into_inner() && !failure.last {
                    failure.last = true;
                    failure.reason += "; a part of the data was processed already";
                }
                failure
            })
        };
        let end = retry::tries(limits, attempt).await.map_err(|f| f.into_error(self.name, profile))?;
        let algorithm = end.descriptor.map(|d| d.algorithm).unwrap_or_default();
        Ok(StreamResult { algorithm, deprecation: warning_of(client, end.metadata) })
    }
}

/// The input of a stream.
struct Source<'a, I> {
    input: &'a mut I,
    /// More than the first chunk was read.
    begun: AtomicBool,
    size: usize,
}

impl<I: AsyncRead + Send + Unpin> Source<'_, I> {
    /// Sends the input, while `receive` makes the call and waits for its result.
    async fn send<Q: Clone, R>(
        &mut self,
        start: &Q,
        first: Vec<u8>,
        whole: bool,
        chunk: impl Fn(Vec<u8>) -> Q,
        receive: impl AsyncFnOnce(Feed<Q>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let (sender, feed) = feed();
        let begun = &self.begun;
        let (input, size) = (&mut *self.input, self.size);
        let sending = async {
            // A call that has ended takes nothing any more, and its result says why.
            if sender.send(Part::Message(start.clone())).await.is_err() {
                return Ok(());
            }
            if !first.is_empty() && sender.send(Part::Message(chunk(first))).await.is_err() {
                return Ok(());
            }
            let mut ended = whole;
            while !ended {
                begun.store(true, Ordering::Relaxed);
                let (octets, last) = read(input, size).await?;
                ended = last;
                if !octets.is_empty() && sender.send(Part::Message(chunk(octets))).await.is_err() {
                    return Ok(());
                }
            }
            let _ = sender.send(Part::End).await;
            Ok(())
        };
        let result = tokio::select! {
            biased;
            Err(error) = sending => Err(unread(error)),
            result = receive(feed) => result,
        };
        result.map_err(|mut failure| {
            if self.begun.load(Ordering::Relaxed) && !failure.last {
                failure.last = true;
                failure.reason += "; a part of the data was processed already";
            }
            failure
        })
    }
}

/// A message of a stream. If the sender is dropped without an end, the stream does not end, because the broker would take a
/// part of the data for the whole.
enum Part<Q> {
    Message(Q),
    End,
}

struct Feed<Q>(mpsc::Receiver<Part<Q>>);

fn feed<Q>() -> (mpsc::Sender<Part<Q>>, Feed<Q>) {
    let (sender, receiver) = mpsc::channel(1);
    (sender, Feed(receiver))
}

impl<Q> Stream for Feed<Q> {
    type Item = Q;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Q>> {
        match ready!(self.0.poll_recv(context)) {
            Some(Part::Message(message)) => Poll::Ready(Some(message)),
            Some(Part::End) => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// Begins a call with a stream of requests.
async fn open<Q>(
    inner: &Inner,
    feed: Feed<Q>,
    left: Option<Duration>,
) -> Result<(tonic::client::Grpc<tonic::transport::Channel>, tonic::Request<Feed<Q>>), Failure> {
    let mut grpc = inner.transport.grpc();
    grpc.ready().await.map_err(|error| inner.transport.failure(&tonic::Status::from_error(error.into())))?;
    let mut request = tonic::Request::new(feed);
    if let Some(left) = left {
        request.set_timeout(left);
    }
    Ok((grpc, request))
}

/// Reads up to so many octets, and reports whether the input has ended.
async fn read(input: &mut (impl AsyncRead + Unpin), size: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut octets = Vec::with_capacity(size);
    while octets.len() < size {
        let left = (size - octets.len()) as u64;
        if (&mut *input).take(left).read_buf(&mut octets).await? == 0 {
            return Ok((octets, true));
        }
    }
    Ok((octets, false))
}

fn unread(error: io::Error) -> Failure {
    let mut failure = Failure::new(Code::Unknown, format!("the input cannot be read: {error}"));
    (failure.source, failure.last) = (Some(error), true);
    failure
}

fn unwritten(error: io::Error) -> Failure {
    let mut failure = Failure::new(Code::Unknown, format!("the output cannot be written: {error}"));
    (failure.source, failure.last) = (Some(error), true);
    failure
}
