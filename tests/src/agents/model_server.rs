//! A model on loopback that plays a script and remembers what it was asked. It speaks both agents'
//! protocols, never reaches the network, and stops when it is dropped. Only requests of the main
//! conversation take a step of the script; side requests (titles, summaries, checks) get a fixed
//! answer and are kept apart.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{self, Reply, Request};
use super::{SCRIPT_ENDED, Step, google, openai};

/// Longer than any agent needs to send a request it has begun.
const READ_LIMIT: Duration = Duration::from_secs(30);

/// The played model.
#[derive(Debug)]
pub struct ModelServer {
    at: SocketAddr,
    model: Arc<Mutex<Model>>,
    stopping: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts playing `script` on a free port of 127.0.0.1.
    pub fn start(script: Vec<Step>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port");
        let at = listener.local_addr().expect("a bound listener has an address");
        let model = Arc::new(Mutex::new(Model { script: script.into(), ..Model::default() }));
        let stopping = Arc::new(AtomicBool::new(false));
        let listening = thread::spawn({
            let (model, stopping) = (Arc::clone(&model), Arc::clone(&stopping));
            move || listen(&listener, &model, &stopping)
        });
        Self { at, model, stopping, listening: Some(listening) }
    }

    /// Where it listens, for example `http://127.0.0.1:40123`.
    pub fn address(&self) -> String {
        format!("http://{}", self.at)
    }

    /// The bodies of the main conversation's requests, in order.
    pub fn requests(&self) -> Vec<Value> {
        locked(&self.model).main.clone()
    }

    /// The bodies of every other model request, in order.
    pub fn side_requests(&self) -> Vec<Value> {
        locked(&self.model).side.clone()
    }

    /// How many steps of the script were never asked for.
    pub fn steps_left(&self) -> usize {
        locked(&self.model).script.len()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // The listener sits in `accept`; one more connection wakes it up to see the flag.
        drop(TcpStream::connect(self.at));
        if let Some(listening) = self.listening.take() {
            drop(listening.join());
        }
    }
}

/// The script that is left and what was asked so far.
#[derive(Debug, Default)]
pub(super) struct Model {
    script: VecDeque<Step>,
    main: Vec<Value>,
    side: Vec<Value>,
}

impl Model {
    /// A request of the main conversation: it is kept, and takes the next step.
    pub(super) fn asked(&mut self, body: Value) -> Step {
        self.main.push(body);
        self.script.pop_front().unwrap_or_else(|| Step::text(SCRIPT_ENDED))
    }

    /// Any other request: it is kept, and the script stays where it is.
    pub(super) fn asked_aside(&mut self, body: Value) {
        self.side.push(body);
    }

    /// A number that grows with every request, for ids that must differ.
    pub(super) fn turn(&self) -> usize {
        self.main.len() + self.side.len()
    }
}

fn locked(model: &Mutex<Model>) -> MutexGuard<'_, Model> {
    model.lock().expect("no thread panics while it holds the model")
}

fn listen(listener: &TcpListener, model: &Arc<Mutex<Model>>, stopping: &AtomicBool) {
    for stream in listener.incoming() {
        if stopping.load(Ordering::SeqCst) {
            return;
        }
        let (Ok(stream), model) = (stream, Arc::clone(model)) else { continue };
        // One thread per connection: an agent may ask for a title while it streams an answer.
        thread::spawn(move || serve(stream, &model));
    }
}

fn serve(mut stream: TcpStream, model: &Mutex<Model>) {
    let set_up = stream.set_read_timeout(Some(READ_LIMIT)).and(stream.set_nodelay(true));
    let Ok(Some(request)) = set_up.and_then(|()| http::read(&stream)) else { return };
    let reply = answer(request, &mut locked(model));
    // An agent that was killed does not wait for its answer; the test sees that elsewhere.
    drop(http::write(&mut stream, &reply));
}

fn answer(request: Request, model: &mut Model) -> Reply {
    if request.path.starts_with("/v1beta/") {
        google::answer(request, model)
    } else if request.path.starts_with("/v1/") {
        openai::answer(request, model)
    } else {
        unknown(&request)
    }
}

/// What a path nobody plays is told.
pub(super) fn unknown(request: &Request) -> Reply {
    let message = format!("the played model has no {} {}", request.method, request.path);
    Reply::Json { status: 404, body: json!({"error": {"code": 404, "message": message}}) }
}
