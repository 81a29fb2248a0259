//! Homes on a full or read-only disk: shell scripts in a mount namespace of their own, where they may mount.

use std::process::Command;

use serde_json::Value;

use crate::home::{Home, binary};

/// A shell script that may mount, ready to be started. It has `$HOOKBUS`, `$HOOKBUS_HOME` and `$EVENT`.
pub fn in_mount_namespace(home: &Home, event: &Value, script: &str) -> Command {
    let mut command = Command::new("unshare"); // from util-linux
    command
        .args(["-rm", "sh", "-euc", script])
        .env("HOOKBUS", binary())
        .env("HOOKBUS_HOME", home.path())
        .env("HOOKBUS_DAEMON", "off")
        .env("EVENT", event.to_string());
    command
}

/// `hookbus hook hermes` with this event, on a home that is read-only for it, ready to be started.
pub fn hook_in_read_only_home(home: &Home, event: &Value) -> Command {
    let script = r#"
        mount --bind "$HOOKBUS_HOME" "$HOOKBUS_HOME"
        mount -o remount,bind,ro "$HOOKBUS_HOME"
        printf '%s' "$EVENT" | "$HOOKBUS" hook hermes
    "#;
    in_mount_namespace(home, event, script)
}
