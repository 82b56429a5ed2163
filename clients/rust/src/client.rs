// SPDX-License-Identifier: Apache-2.0

use std::{
    collections::HashSet,
    env, fmt,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::{
    call::{Call, Operation},
    error::Error,
    exchange::Exchanges,
    results::{Deprecation, Health, TraceContext},
    retry::Limits,
    transport::Transport,
    wire::health,
};

/// The path of the socket on which brokers listen by default.
pub const DEFAULT_SOCKET: &str = "/tmp/open-crypto-broker/crypto-broker-server.sock";
/// The name of the environment variable with the path of the socket.
pub const SOCKET_VARIABLE: &str = "CRYPTO_BROKER_SOCKET";

/// For how long calls are tried again by default. It is enough for the start of a broker.
const RETRY_BUDGET: Duration = Duration::from_secs(60);

type Tracer = dyn Fn() -> Option<TraceContext> + Send + Sync;
type Listener = dyn Fn(&Deprecation) + Send + Sync;

/// Calls one broker. A clone shares its connection, so that one client serves a whole program.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub transport: Transport,
    pub exchanges: Exchanges,
    pub settings: Settings,
    /// The warnings of which the listener knows.
    warned: Mutex<HashSet<Deprecation>>,
}

pub(crate) struct Settings {
    pub profile: String,
    pub exchange: bool,
    timeout: Option<Duration>,
    retry_budget: Duration,
    tracer: Option<Box<Tracer>>,
    listener: Option<Box<Listener>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("profile", &self.inner.settings.profile).finish_non_exhaustive()
    }
}

impl Client {
    /// Returns a client with the defaults of [`Builder`].
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub fn new() -> Result<Client, Error> {
        Client::builder().build()
    }

    /// Begins to describe a client.
    pub fn builder() -> Builder {
        Builder {
            socket: None,
            settings: Settings {
                profile: String::new(),
                exchange: true,
                timeout: None,
                retry_budget: RETRY_BUDGET,
                tracer: None,
                listener: None,
            },
        }
    }

    /// Returns the health of the broker. It is tried once, and fails with `Unavailable` at once if the broker cannot be
    /// reached.
    ///
    /// # Errors
    ///
    /// [`Error`] if the broker does not answer.
    pub async fn health(&self) -> Result<Health, Error> {
        const NAME: &str = "Health";
        let mut limits = self.limits(None);
        limits.budget = Duration::ZERO;
        let inner = &self.inner;
        let check = || async {
            let reply: health::CheckResponse =
                inner.transport.unary("/grpc.health.v1.Health/Check", Vec::new(), limits.left()).await?;
            Ok(match reply.status {
                1 => Health::Serving,
                2 => Health::NotServing,
                _ => Health::Unknown,
            })
        };
        crate::retry::tries(limits, check).await.map_err(|mut failure| {
            failure.spent = false;
            failure.into_error(NAME, "")
        })
    }

    /// Returns the limits of a call that begins now.
    pub(crate) fn limits(&self, timeout: Option<Duration>) -> Limits {
        let settings = &self.inner.settings;
        let deadline = timeout.or(settings.timeout).and_then(|t| Instant::now().checked_add(t));
        Limits { budget: settings.retry_budget, deadline }
    }

    pub(crate) fn call<O: Operation>(&self, operation: O) -> Call<O> {
        Call::new(self.clone(), operation)
    }

    pub(crate) fn trace(&self) -> Option<TraceContext> {
        self.inner.settings.tracer.as_ref().and_then(|tracer| tracer())
    }

    /// Calls the listener, once for each different warning.
    pub(crate) fn warn(&self, warning: &Option<Deprecation>) {
        let (Some(warning), Some(listener)) = (warning, &self.inner.settings.listener) else { return };
        let first = self.inner.warned.lock().expect("nothing panics with this lock").insert(warning.clone());
        if first {
            listener(warning);
        }
    }
}

/// Describes a client.
pub struct Builder {
    socket: Option<PathBuf>,
    settings: Settings,
}

impl Builder {
    /// Sets the path of the broker's socket. The default is the value of the environment variable `CRYPTO_BROKER_SOCKET`, or
    /// else [`DEFAULT_SOCKET`].
    pub fn socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.socket = Some(path.into());
        self
    }

    /// Sets the profile of all calls that do not name one.
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.settings.profile = name.into();
        self
    }

    /// Bounds the time of each call with all its tries. The default is no bound.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.settings.timeout = Some(time);
        self
    }

    /// Sets for how long after its begin a call is tried again, if the broker cannot be reached or is busy. The default is 60
    /// seconds. With zero there is one try. The longest wait between two tries is one second.
    pub fn retry_budget(mut self, time: Duration) -> Self {
        self.settings.retry_budget = time;
        self
    }

    /// Sets a function that returns the trace of a call (W3C Trace Context). The client calls it once for each call that sets
    /// none.
    pub fn trace_context(mut self, from: impl Fn() -> Option<TraceContext> + Send + Sync + 'static) -> Self {
        self.settings.tracer = Some(Box::new(from));
        self
    }

    /// Sets a function for warnings of deprecated profiles. The client calls it once for each different warning.
    pub fn on_deprecation(mut self, handle: impl Fn(&Deprecation) + Send + Sync + 'static) -> Self {
        self.settings.listener = Some(Box::new(handle));
        self
    }

    /// Makes each request a unary call, even if the broker has the stream for many calls. Unary calls are slower. This is for
    /// comparisons.
    pub fn without_exchange(mut self) -> Self {
        self.settings.exchange = false;
        self
    }

    /// Returns the client. It connects at its first call, so that the broker may start later. A runtime of Tokio has to run.
    ///
    /// # Errors
    ///
    /// [`Error`] with `InvalidArgument` if the path of the socket is empty.
    pub fn build(self) -> Result<Client, Error> {
        let socket = self.socket.unwrap_or_else(|| match env::var_os(SOCKET_VARIABLE) {
            Some(path) if !path.is_empty() => path.into(),
            _ => DEFAULT_SOCKET.into(),
        });
        if socket.as_os_str().is_empty() {
            return Err(Error::option("the path of the socket is empty, expected a path"));
        }
        Ok(Client {
            inner: Arc::new(Inner {
                transport: Transport::new(socket),
                exchanges: Exchanges::default(),
                settings: self.settings,
                warned: Mutex::default(),
            }),
        })
    }
}
