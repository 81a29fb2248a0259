//! A real NATS server with JetStream, on a port and in a directory of its own. It can be killed,
//! started again, and put back to an older state.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use async_nats::jetstream::{self, stream::Stream};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::home::wait_until;
use crate::port::Port;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The one that everything is tried with.
    Newest,
    /// 2.11: no atomic batches.
    V2_11,
    /// 2.10: no guard per bus, either.
    V2_10,
}

/// A server; killed when dropped.
#[derive(Debug)]
pub struct NatsServer {
    version: Version,
    folder: TempDir,
    port: Port,
    /// Those on which it meets its like, or is watched.
    more_ports: Vec<Port>,
    options: Vec<String>,
    /// Whether the options name a configuration that says everything.
    configured: bool,
    /// How large a file may grow, in blocks of 512 bytes.
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
    /// A server that listens.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with more options.
    pub fn start_with(options: &[&str]) -> Self {
        let mut server = Self::prepare(options);
        server.run();
        server
    }

    /// An older one.
    pub fn start_version(version: Version) -> Self {
        let mut server = Self::prepare(&[]);
        server.version = version;
        server.run();
        server
    }

    /// One whose files can grow to this many blocks of 512 bytes: beyond that each write fails, as on a
    /// full disk.
    pub fn start_with_little_room(blocks: u32) -> Self {
        let mut server = Self::prepare(&[]);
        server.file_limit = Some(blocks);
        server.run();
        server
    }

    /// Gives it all the room there is, from its next start on.
    pub const fn make_room(&mut self) {
        self.file_limit = None;
    }

    /// Three servers that know each other, as plain processes.
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

    /// Three nodes with this configuration, in which `names` are the hosts they know each other by.
    pub fn cluster_of(config: &str, names: [&str; 3]) -> [Self; 3] {
        let local = |port: &Port| format!("127.0.0.1:{}", port.number());
        let ports: [Port; 3] = std::array::from_fn(|_| Port::reserve());
        let peers =
            names.iter().zip(&ports).map(|(name, port)| (format!("{name}:6222"), local(port)));
        let peers: Vec<(String, String)> = peers.collect();
        let mut own_names = names.into_iter();
        let mut servers = ports.map(|port| {
            let mut server = Self::prepare(&[]);
            let watched = Port::reserve();
            let mut own = config
                .replace("$NODE", own_names.next().expect("a name each"))
                .replace("0.0.0.0:4222", &local(&server.port))
                .replace("127.0.0.1:8222", &local(&watched))
                .replace("0.0.0.0:6222", &local(&port))
                .replace("/data", &server.store().to_string_lossy());
            for (name, address) in &peers {
                own = own.replace(name, address);
            }
            server.more_ports.extend([port, watched]);
            let file = server.folder.path().join("node.conf");
            fs::write(&file, own).expect("a configuration");
            server.configured = true;
            server.options = vec!["-c".to_owned(), file.to_string_lossy().into_owned()];
            server
        });
        servers.iter_mut().for_each(Self::run);
        servers
    }

    /// A server that does not run yet.
    pub fn prepare(options: &[&str]) -> Self {
        Self {
            version: Version::Newest,
            folder: tempfile::Builder::new().prefix("nats-").tempdir().expect("a place"),
            port: Port::reserve(),
            more_ports: Vec::new(),
            options: options.iter().map(|&option| option.to_owned()).collect(),
            configured: false,
            file_limit: None,
            child: None,
        }
    }

    /// Starts it (again), on the same port and with what it kept.
    pub fn run(&mut self) {
        let limit =
            self.file_limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
        let said = self.folder.path().join("said");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -f {limit}; exec \"$0\" \"$@\"")]);
        command.arg(program(self.version));
        // A configuration says all of this by itself.
        if !self.configured {
            let port = self.port.number().to_string();
            command.args(["-a", "127.0.0.1", "-p", &port, "-js", "-sd"]).arg(self.store());
        }
        let child = command
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&said).expect("a file"))
            .spawn()
            .expect("nats-server starts");
        let child = self.child.insert(child);
        wait_until("nats-server listens", || {
            let ended = child.try_wait().expect("ours");
            assert!(ended.is_none(), "it ended: {}", fs::read_to_string(&said).unwrap_or_default());
            TcpStream::connect((Ipv4Addr::LOCALHOST, self.port.number())).is_ok()
        });
    }

    /// Stops it in its tracks: its connections stay, and nothing is answered.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it runs");
        kill_process(Pid::from_child(child), signal).expect("ours");
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("ours");
            child.wait().expect("ours");
        }
    }

    /// Where to connect.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port.number())
    }

    /// Keeps a copy of everything it holds; it must not run.
    pub fn save(&self) {
        copy(&self.store(), &self.folder.path().join("saved"));
    }

    /// Puts it back to that copy; it must not run.
    pub fn restore(&self) {
        fs::remove_dir_all(self.store()).expect("ours");
        copy(&self.folder.path().join("saved"), &self.store());
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Does something with the stream `HOOKBUS`.
    pub fn with_stream<T>(&self, doing: impl AsyncFnOnce(Stream, jetstream::Context) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let client = async_nats::connect(self.url()).await.expect("a server");
            let context = jetstream::new(client);
            let stream = context.get_stream("HOOKBUS").await.expect("a stream");
            doing(stream, context).await
        })
    }

    /// The subject and body of everything in the stream, read in one go.
    pub async fn bodies(&self) -> Vec<(String, Vec<u8>)> {
        let client = async_nats::connect(self.url()).await.expect("a server");
        let stream = jetstream::new(client).get_stream("HOOKBUS").await.expect("a stream");
        read(stream, |message| (message.subject.to_string(), message.payload.to_vec())).await
    }

    /// Everything in the stream, in its order.
    pub fn published(&self) -> Vec<Published> {
        self.with_stream(async |stream, _| {
            read(stream, |message| {
                let headers = message.headers.as_ref().expect("headers");
                let header = |name: &str| headers.get(name).map(|value| value.as_str().to_owned());
                Published {
                    subject: message.subject.to_string(),
                    seq: header("Hookbus-Seq").expect("a place").parse().expect("a number"),
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
    let whole = stream.info().await.expect("a stream").state.messages;
    let config = jetstream::consumer::pull::OrderedConfig::default();
    let consumer = stream.create_consumer(config).await.expect("a consumer");
    let mut messages = consumer.messages().await.expect("messages");
    let mut all = Vec::new();
    while (all.len() as u64) < whole {
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
    assert!(program.is_file(), "there is no {}; run tests/fetch-nats", program.display());
    program
}

/// Where the Python client is.
pub fn python_client() -> PathBuf {
    folder().join("python")
}
