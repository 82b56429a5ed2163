// SPDX-License-Identifier: Apache-2.0

//! Real brokers, built from the same checkout.

#![allow(dead_code, reason = "each test program uses a part")]

use std::{
    env, fs,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::OnceLock,
    time::Duration,
};

use crypto_broker::{Builder, Client};
use tempfile::TempDir;

/// Far above what anything here takes; only a failure reaches it.
pub const LIMIT: Duration = Duration::from_secs(60);

const PROFILES: &str = r#"
- Name: Default
  API:
    HashData: {HashAlg: sha-256}
  Audit: {Level: all}
- Name: Old
  API:
    HashData: {HashAlg: sha-512}
  Deprecation: {ReplacedBy: Default, DeprecatedSince: 2026-01-01, RemoveAfter: 2027-01-01, Reason: It is long.}
- Name: Orders
  API:
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: orders}, {Id: nobody}]}
- Name: Data
  API:
    DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: orders}]}
- Name: Shop
  API:
    Session: {Protocols: [session-v1, session-v2], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}
"#;

/// A broker that can be stopped and started again.
pub struct Broker {
    folder: TempDir,
    process: Option<Child>,
}

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("broker-{}", std::process::id()));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let built = Command::new("go")
            .args(["build", "-o"])
            .arg(&path)
            .arg("./cmd/broker")
            .current_dir(root)
            .env("CGO_ENABLED", "0")
            .status();
        assert!(built.expect("go has to be installed").success());
        path
    })
}

impl Broker {
    /// Makes the files of a broker, which does not run yet.
    pub fn new() -> Broker {
        program(); // no call waits while it is built
        let folder = tempfile::Builder::new().prefix("rs").tempdir().unwrap();
        for name in ["profiles", "keys"] {
            fs::DirBuilder::new().mode(0o700).create(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("profiles/Profiles.yaml"), PROFILES).unwrap();
        let key = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.path().join("keys/orders.bin"));
        std::io::Write::write_all(&mut key.unwrap(), &[b'k'; 32]).unwrap();
        Broker { folder, process: None }
    }

    /// Returns a broker that serves.
    pub async fn serving() -> Broker {
        let mut broker = Broker::new();
        broker.start();
        broker.client().hash_data("").profile("Default").await.unwrap();
        broker
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s/crypto-broker-server.sock")
    }

    pub fn audit_file(&self) -> PathBuf {
        self.folder.path().join("audit.jsonl")
    }

    pub fn builder(&self) -> Builder {
        Client::builder().socket(self.socket()).timeout(LIMIT)
    }

    pub fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    pub fn start(&mut self) {
        let mut command = Command::new(program());
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("CRYPTO_BROKER_") {
                command.env_remove(name);
            }
        }
        for (flag, name) in
            [("--profiles-dir", "profiles"), ("--keys-dir", "keys"), ("--socket-dir", "s"), ("--audit-file", "audit.jsonl")]
        {
            command.arg(flag).arg(self.folder.path().join(name));
        }
        self.process = Some(command.args(["--log-level", "warn"]).spawn().unwrap());
    }

    /// Stops the broker, and returns once none of its threads runs.
    pub fn pause(&self) {
        self.signal("STOP");
        let tasks = format!("/proc/{}/task", self.process.as_ref().expect("the broker runs").id());
        let stopped = |task: fs::DirEntry| {
            let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
        };
        while !fs::read_dir(&tasks).unwrap().all(|task| task.is_ok_and(stopped)) {
            std::thread::yield_now();
        }
    }

    /// Lets a broker that was stopped run again.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let process = self.process.as_ref().expect("the broker runs").id().to_string();
        assert!(Command::new("kill").args(["-s", name, &process]).status().unwrap().success());
    }

    /// Ends the broker at once, and returns when it has ended.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}
