//! Connecting to NATS.

use std::time::Duration;

use async_nats::{Client, ConnectOptions};

use super::settings::{Login, NatsSettings};

/// A server that does not answer by then is not there.
const CONNECT: Duration = Duration::from_secs(3);

/// Connects, or says why not. Errors of the library do not hold secrets; the URL might, and is
/// not repeated.
pub async fn connect(settings: &NatsSettings, name: &str) -> Result<Client, String> {
    let mut options = ConnectOptions::new()
        .name(name)
        .connection_timeout(CONNECT)
        .request_timeout(Some(Duration::from_secs(5)))
        .max_reconnects(1);
    options = match &settings.login {
        Login::None => options,
        Login::Password(user, password) => {
            options.user_and_password(user.clone(), password.reveal())
        }
        Login::Token(token) => options.token(token.reveal()),
        Login::Nkey(seed) => options.nkey(seed.reveal()),
        Login::Credentials(file) => options.credentials_file(file).await.map_err(|error| {
            format!("cannot read the credentials file {}: {error}", file.display())
        })?,
    };
    if let Some(ca) = &settings.ca {
        options = options.add_root_certificates(ca.clone()).require_tls(true);
    }
    if let Some((certificate, key)) = &settings.client_certificate {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    let client = tokio::time::timeout(CONNECT * 2, options.connect(&settings.urls)).await;
    let client = client
        .map_err(|_| "no answer from NATS".to_owned())?
        .map_err(|error| format!("cannot connect to NATS: {error}"))?;
    let info = client.server_info();
    if version(&info.version) < (2, 12) {
        return Err(format!(
            "the NATS server is {}; hookbus publishes in atomic batches, which need 2.12 or newer",
            info.version
        ));
    }
    Ok(client)
}

fn version(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}
