//! A model server on 127.0.0.1 that answers by a script and keeps the requests. It implements both agents'
//! protocols and stops when it is dropped. Only requests of the main conversation consume a step of the
//! script; side requests (titles, summaries, checks) get a fixed answer and are kept separately.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{self, Request, Response};
use super::{SCRIPT_ENDED, Step, google, openai};

/// How long an agent may take to send a request.
const READ_LIMIT: Duration = Duration::from_secs(30);

/// The scripted model.
#[derive(Debug)]
pub struct ModelServer {
    at: SocketAddr,
    model: Arc<Mutex<Model>>,
    stopping: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts it with `script` on a free port of 127.0.0.1.
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

    /// Its URL, for example `http://127.0.0.1:40123`.
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

    /// How many steps of the script were not used.
    pub fn steps_left(&self) -> usize {
        locked(&self.model).script.len()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // The listener blocks in `accept`; one more connection makes it check the flag.
        drop(TcpStream::connect(self.at));
        if let Some(listening) = self.listening.take() {
            drop(listening.join());
        }
    }
}

/// The rest of the script, and the requests so far.
#[derive(Debug, Default)]
pub(super) struct Model {
    script: VecDeque<Step>,
    main: Vec<Value>,
    side: Vec<Value>,
}

impl Model {
    /// Keeps a request of the main conversation; returns the next step of the script.
    pub(super) fn next_step(&mut self, body: Value) -> Step {
        self.main.push(body);
        self.script.pop_front().unwrap_or_else(|| Step::text(SCRIPT_ENDED))
    }

    /// Keeps any other request.
    pub(super) fn keep_side_request(&mut self, body: Value) {
        self.side.push(body);
    }

    /// The number of requests so far, for ids that must differ.
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
        // One thread per connection: an agent may request a title while it streams an answer.
        thread::spawn(move || serve(stream, &model));
    }
}

fn serve(mut stream: TcpStream, model: &Mutex<Model>) {
    let set_up = stream.set_read_timeout(Some(READ_LIMIT)).and(stream.set_nodelay(true));
    let Ok(Some(request)) = set_up.and_then(|()| http::read(&stream)) else { return };
    let response = answer(request, &mut locked(model));
    // A killed agent closes the connection; the test notices that elsewhere.
    drop(http::write(&mut stream, &response));
}

fn answer(request: Request, model: &mut Model) -> Response {
    if request.path.starts_with("/v1beta/") {
        google::answer(request, model)
    } else if request.path.starts_with("/v1/") {
        openai::answer(request, model)
    } else {
        unknown(&request)
    }
}

/// The response to a path that the server of the model does not have.
pub(super) fn unknown(request: &Request) -> Response {
    let message = format!("the scripted model has no {} {}", request.method, request.path);
    Response::Json { status: 404, body: json!({"error": {"code": 404, "message": message}}) }
}
