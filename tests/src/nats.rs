//! A real NATS server with JetStream, with a port and a directory of its own. A test can kill it, restart
//! it, and restore its store from an earlier copy.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use async_nats::HeaderMap;
use async_nats::jetstream::{self, stream::Stream};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::home::wait_until;
use crate::port::Port;

/// The version of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The newest one, with which every test runs.
    Newest,
    /// 2.11: no atomic batches.
    V2_11,
    /// 2.10: also no check of the last message per bus.
    V2_10,
}

/// A server; killed when dropped.
#[derive(Debug)]
pub struct NatsServer {
    version: Version,
    folder: TempDir,
    port: Port,
    /// Ports for the cluster and for monitoring.
    more_ports: Vec<Port>,
    options: Vec<String>,
    /// Whether a configuration file sets the port and the store.
    configured: bool,
    /// The largest file it can write, in blocks of 512 bytes.
    file_limit: Option<u32>,
    child: Option<Child>,
}

/// A message of the stream.
#[derive(Debug, Clone)]
pub struct Published {
    /// Its subject.
    pub subject: String,
    /// `Hookbus-Seq`.
    pub seq: i64,
    /// `Hookbus-Hash`.
    pub hash: String,
    /// `Nats-Msg-Id`.
    pub id: Option<String>,
    /// The envelope, as bytes.
    pub body: Vec<u8>,
}

impl Published {
    /// The envelope.
    pub fn envelope(&self) -> Value {
        serde_json::from_slice(&self.body).expect("an envelope is JSON")
    }
}

impl NatsServer {
    /// Starts a server.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with more options.
    pub fn start_with(options: &[&str]) -> Self {
        let mut server = Self::prepare(options);
        server.run();
        server
    }

    /// Starts a server of this version.
    pub fn start_version(version: Version) -> Self {
        let mut server = Self::prepare(&[]);
        server.version = version;
        server.run();
        server
    }

    /// Starts a server whose files can grow to this many blocks of 512 bytes. Further writes fail, as on a
    /// full disk.
    pub fn start_with_file_limit(blocks: u32) -> Self {
        let mut server = Self::prepare(&[]);
        server.file_limit = Some(blocks);
        server.run();
        server
    }

    /// Removes the limit; takes effect with the next start.
    pub const fn remove_file_limit(&mut self) {
        self.file_limit = None;
    }

    /// Starts a cluster of three servers.
    pub fn cluster() -> [Self; 3] {
        let ports: [Port; 3] = std::array::from_fn(|_| Port::reserve());
        let route = |port: &Port| format!("nats://127.0.0.1:{}", port.number());
        let routes = ports.iter().map(route).collect::<Vec<_>>().join(",");
        let mut names = ["node-0", "node-1", "node-2"].into_iter();
        let mut servers = ports.map(|port| {
            let (name, own) = (names.next().expect("a name each"), route(&port));
            let options = [
                "--server_name",
                name,
                "--cluster_name",
                "three",
                "--cluster",
                &own,
                "--routes",
                &routes,
            ];
            let mut server = Self::prepare(&options);
            server.more_ports.push(port);
            server
        });
        servers.iter_mut().for_each(Self::run);
        servers
    }

    /// Starts a cluster of three servers with this configuration, in which they have the host names `names`.
    pub fn cluster_of(config: &str, names: [&str; 3]) -> [Self; 3] {
        let local = |port: &Port| format!("127.0.0.1:{}", port.number());
        let ports: [Port; 3] = std::array::from_fn(|_| Port::reserve());
        let peers =
            names.iter().zip(&ports).map(|(name, port)| (format!("{name}:6222"), local(port)));
        let peers: Vec<(String, String)> = peers.collect();
        let mut own_names = names.into_iter();
        let mut servers = ports.map(|port| {
            let mut server = Self::prepare(&[]);
            let monitoring = Port::reserve();
            let mut own = config
                .replace("$NODE", own_names.next().expect("a name each"))
                .replace("0.0.0.0:4222", &local(&server.port))
                .replace("127.0.0.1:8222", &local(&monitoring))
                .replace("0.0.0.0:6222", &local(&port))
                .replace("/data", &server.store().to_string_lossy());
            for (name, address) in &peers {
                own = own.replace(name, address);
            }
            server.more_ports.extend([port, monitoring]);
            let file = server.folder.path().join("node.conf");
            fs::write(&file, own).expect("a configuration");
            server.configured = true;
            server.options = vec!["-c".to_owned(), file.to_string_lossy().into_owned()];
            server
        });
        servers.iter_mut().for_each(Self::run);
        servers
    }

    /// A server that is not started yet.
    pub fn prepare(options: &[&str]) -> Self {
        Self {
            version: Version::Newest,
            folder: tempfile::Builder::new().prefix("nats-").tempdir().expect("a directory"),
            port: Port::reserve(),
            more_ports: Vec::new(),
            options: options.iter().map(|&option| option.to_owned()).collect(),
            configured: false,
            file_limit: None,
            child: None,
        }
    }

    /// Starts or restarts it, with the same port and store.
    pub fn run(&mut self) {
        let limit =
            self.file_limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
        let stderr = self.folder.path().join("stderr");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -f {limit}; exec \"$0\" \"$@\"")]);
        command.arg(program(self.version));
        // A configuration file contains all of this.
        if !self.configured {
            let port = self.port.number().to_string();
            command.args(["-a", "127.0.0.1", "-p", &port, "-js", "-sd"]).arg(self.store());
        }
        let child = command
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&stderr).expect("a file"))
            .spawn()
            .expect("nats-server starts");
        let child = self.child.insert(child);
        wait_until("nats-server listens", || {
            let ended = child.try_wait().expect("our child");
            assert!(
                ended.is_none(),
                "it ended: {}",
                fs::read_to_string(&stderr).unwrap_or_default()
            );
            TcpStream::connect((Ipv4Addr::LOCALHOST, self.port.number())).is_ok()
        });
    }

    /// SIGSTOP: its connections stay open, but it does not reply.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT: it continues.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it runs");
        kill_process(Pid::from_child(child), signal).expect("our child");
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("our child");
            child.wait().expect("our child");
        }
    }

    /// The URL to connect to.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port.number())
    }

    /// Copies its store. It must not be running.
    pub fn save(&self) {
        copy(&self.store(), &self.folder.path().join("saved"));
    }

    /// Restores its store from the copy. It must not be running.
    pub fn restore(&self) {
        fs::remove_dir_all(self.store()).expect("our directory");
        copy(&self.folder.path().join("saved"), &self.store());
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Calls `with` with the stream `HOOKBUS`.
    pub fn with_stream<T>(&self, with: impl AsyncFnOnce(Stream, jetstream::Context) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let client = async_nats::connect(self.url()).await.expect("a server");
            let context = jetstream::new(client);
            let stream = context.get_stream("HOOKBUS").await.expect("a stream");
            with(stream, context).await
        })
    }

    /// Publishes messages that no bus wrote, each on its subject.
    pub fn forge(&self, messages: impl IntoIterator<Item = (String, Vec<u8>)>) {
        self.with_stream(async |_, context| {
            for (subject, body) in messages {
                let sent = context.publish(subject, body.into()).await.expect("a stream");
                sent.await.expect("an acknowledgement");
            }
        });
    }

    /// Publishes messages that no bus wrote, each on its subject and with its headers.
    pub fn forge_with_headers(
        &self,
        messages: impl IntoIterator<Item = (String, HeaderMap, Vec<u8>)>,
    ) {
        self.with_stream(async |_, context| {
            for (subject, headers, body) in messages {
                let sent = context.publish_with_headers(subject, headers, body.into()).await;
                sent.expect("a stream").await.expect("an acknowledgement");
            }
        });
    }

    /// The subject and the body of every message in the stream.
    pub async fn bodies(&self) -> Vec<(String, Vec<u8>)> {
        let client = async_nats::connect(self.url()).await.expect("a server");
        let stream = jetstream::new(client).get_stream("HOOKBUS").await.expect("a stream");
        read(stream, |message| (message.subject.to_string(), message.payload.to_vec())).await
    }

    /// Every message in the stream, in order.
    pub fn published(&self) -> Vec<Published> {
        self.with_stream(async |stream, _| {
            read(stream, |message| {
                let headers = message.headers.as_ref().expect("headers");
                let header = |name: &str| headers.get(name).map(|value| value.as_str().to_owned());
                Published {
                    subject: message.subject.to_string(),
                    seq: header("Hookbus-Seq").expect("a seq").parse().expect("a number"),
                    hash: header("Hookbus-Hash").expect("a hash"),
                    id: header("Nats-Msg-Id"),
                    body: message.payload.to_vec(),
                }
            })
            .await
        })
    }
}

async fn read<T>(mut stream: Stream, each: impl Fn(&jetstream::Message) -> T) -> Vec<T> {
    let count = stream.info().await.expect("a stream").state.messages;
    let config = jetstream::consumer::pull::OrderedConfig::default();
    let consumer = stream.create_consumer(config).await.expect("a consumer");
    let mut messages = consumer.messages().await.expect("messages");
    let mut all = Vec::new();
    while (all.len() as u64) < count {
        let message = futures_util::StreamExt::next(&mut messages).await.expect("one more");
        all.push(each(&message.expect("a message")));
    }
    all
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-r").arg(from).arg(to).status();
    assert!(done.expect("cp runs").success());
}

fn folder() -> PathBuf {
    let named = std::env::var_os("HOOKBUS_TEST_NATS").map(PathBuf::from);
    let target = || {
        let own = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        own.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"))
    };
    named.unwrap_or_else(|| target().join("nats"))
}

fn program(version: Version) -> PathBuf {
    let program = folder().join(match version {
        Version::Newest => "nats-server",
        Version::V2_11 => "nats-server-2.11",
        Version::V2_10 => "nats-server-2.10",
    });
    assert!(program.is_file(), "{} is missing; run tests/fetch-nats", program.display());
    program
}

/// The directory of the Python client.
pub fn python_client() -> PathBuf {
    folder().join("python")
}
