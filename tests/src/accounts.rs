//! A NATS operator with one account and one user, as JWTs. The operator signs the accounts, the account
//! signs the user.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde_json::{Value, json};

/// What a server and a client need to use JWT authentication.
#[derive(Debug)]
pub struct Accounts {
    /// The server's configuration.
    pub config: String,
    /// The user's credentials file.
    pub credentials: String,
}

impl Accounts {
    /// Makes new keys and tokens.
    pub fn new() -> Self {
        let operator = KeyPair::new_operator();
        let (system, account, user) =
            (KeyPair::new_account(), KeyPair::new_account(), KeyPair::new_user());
        let no_limits = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "conn": -1,
            "leaf": -1, "wildcards": true, "mem_storage": -1, "disk_storage": -1, "streams": -1,
            "consumer": -1,
        });
        let system_limits = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1,
            "exports": -1, "conn": -1, "leaf": -1, "wildcards": true});
        let of_operator = token(&operator, &operator, &json!({"type": "operator", "version": 2}));
        let of_account = |account: &KeyPair, limits: &Value| {
            let claims = json!({"limits": limits, "type": "account", "version": 2});
            format!("  {}: {}", account.public_key(), token(&operator, account, &claims))
        };
        let of_user = json!({"pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1,
            "type": "user", "version": 2});
        Self {
            config: format!(
                "operator: {of_operator}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{\n{}\n{}\n}}\n",
                system.public_key(),
                of_account(&system, &system_limits),
                of_account(&account, &no_limits),
            ),
            credentials: format!(
                "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
                 -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
                token(&account, &user, &of_user),
                user.seed().expect("a new key has its seed"),
            ),
        }
    }
}

impl Default for Accounts {
    fn default() -> Self {
        Self::new()
    }
}

/// A token about `subject`, signed by `issuer`.
fn token(issuer: &KeyPair, subject: &KeyPair, claims: &Value) -> String {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let name = subject.public_key();
    let head = part(json!({"typ": "JWT", "alg": "ed25519-nkey"}));
    let body = part(json!({"jti": name, "iat": 1_700_000_000, "iss": issuer.public_key(),
        "name": name, "sub": name, "nats": claims}));
    let signed = format!("{head}.{body}");
    let signature = issuer.sign(signed.as_bytes()).expect("a new key signs");
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}
