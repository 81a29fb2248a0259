-- One log, one bus: minted with the file, and where the hash chain starts.
CREATE TABLE bus (
    id      BLOB    NOT NULL,
    created INTEGER NOT NULL -- microseconds since 1970, UTC
) STRICT;

-- Events and decisions. `seq` is given by the writer: no gaps, never used again.
CREATE TABLE events (
    seq        INTEGER PRIMARY KEY,
    id         BLOB    NOT NULL, -- UUIDv7; a decision has the odd id after its event's
    time       INTEGER NOT NULL, -- microseconds since 1970, UTC, when the client heard of it
    agent      TEXT    NOT NULL,
    session    TEXT    NOT NULL, -- derived from the payload, like turn, kind, tool and tool_class
    turn       TEXT,
    name       TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    tool       TEXT,
    tool_class TEXT,
    cause      INTEGER,          -- the seq of the event that a decision is about
    context    TEXT,             -- JSON: cwd, the agent's session variables, marks such as `late`
    payload    ANY     NOT NULL, -- the bytes as they arrived: TEXT if they are text, else BLOB
    hash       BLOB    NOT NULL
) STRICT;

-- Look-ups by id and by time (ids sort by time), and by session in log order.
CREATE UNIQUE INDEX events_by_id ON events (id);
CREATE INDEX events_by_session ON events (session);
-- The hooks in force: a handful of rows, found without a scan.
CREATE INDEX hooks_loaded ON events (seq) WHERE kind = 'hooks.loaded';

CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
-- `INSERT OR REPLACE` deletes without asking the trigger below.
CREATE TRIGGER events_are_never_replaced BEFORE INSERT ON events
WHEN NEW.seq <= (SELECT max(seq) FROM events) OR EXISTS (SELECT 1 FROM events WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER a_log_keeps_its_bus BEFORE UPDATE ON bus
BEGIN SELECT RAISE(ABORT, 'a log keeps its bus id'); END;
