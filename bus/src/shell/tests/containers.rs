//! Files inside a new container are those of this machine where a directory is mounted; other files in it are not ours to guard.

use super::files;

#[test]
fn maps_the_files_of_a_container_to_mounted_directories() {
    let table: &[(&str, &[&str])] = &[
        ("docker run --rm alpine rm -rf /etc", &[]),
        ("docker run --rm alpine sh -c 'echo x > /etc/motd; rm -rf /tmp/*'", &[]),
        ("docker run -v /:/host alpine rm -rf /host/etc", &["delete /etc", "write /"]),
        ("docker run -v /srv/a:/w -w /w alpine rm -rf .", &["delete /srv/a", "write /srv/a"]),
        (
            "docker run -v /srv/a:/w alpine rm -rf /w/../etc",
            &["delete /srv/a/../etc", "write /srv/a"],
        ),
        ("docker run -v /srv/a:/w alpine sh -c 'echo > /w/b'", &["write /srv/a", "write /srv/a/b"]),
        ("docker run -v data:/var/lib alpine rm -rf /var/lib/x", &["delete /var/lib/x"]),
        ("docker run --mount type=bind,src=/a,dst=/b alpine cat /b/c", &["read /a/c", "write /a"]),
        ("docker exec web rm -rf /data", &["delete /data"]),
    ];
    for (line, expected) in table {
        let mut found = files(line);
        found.sort();
        assert_eq!(found, *expected, "{line}");
    }
}
