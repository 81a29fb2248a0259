-- Who recorded rows. The `context` of a row ends with the key (`by`), which its hash covers.
CREATE TABLE identities (
    key  TEXT PRIMARY KEY, -- the first 16 hex digits of the SHA-256 of the rest
    host TEXT NOT NULL,    -- the machine or container, as its kernel calls it
    user TEXT NOT NULL,    -- by the password database
    home TEXT NOT NULL,    -- the directory of the log
    name TEXT NOT NULL     -- `name:` in hookbus.yaml, or user@host
) STRICT;

CREATE TRIGGER identities_are_never_changed BEFORE UPDATE ON identities
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER identities_are_never_deleted BEFORE DELETE ON identities
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
