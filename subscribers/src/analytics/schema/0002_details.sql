-- One row per session, turn, tool call, decision, verdict and request to a model. Times are microseconds since 1970,
-- spans are microseconds, costs are billionths of a US dollar: whole numbers, so that sums do not depend on their order.

CREATE TABLE p_sessions (
    bus           INTEGER NOT NULL,
    session       TEXT    NOT NULL,
    agent         TEXT    NOT NULL,
    project       TEXT    NOT NULL,
    model         TEXT    NOT NULL, -- the last one
    first_seq     INTEGER NOT NULL,
    last_seq      INTEGER NOT NULL,
    started       INTEGER NOT NULL,
    active        INTEGER NOT NULL, -- the time of the last event
    ended         INTEGER,          -- when the agent said that it ended
    prompt        TEXT,             -- the first one, shortened
    events        INTEGER NOT NULL,
    turns         INTEGER NOT NULL,
    tool_calls    INTEGER NOT NULL,
    failed        INTEGER NOT NULL,
    decisions     INTEGER NOT NULL,
    blocked       INTEGER NOT NULL,
    asked         INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost          INTEGER NOT NULL,
    open_usage    INTEGER,          -- the row of p_usage that the next chunk of the same request replaces
    PRIMARY KEY (bus, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX p_sessions_by_time ON p_sessions (active);

CREATE TABLE p_turns (
    bus           INTEGER NOT NULL,
    session       TEXT    NOT NULL,
    turn          INTEGER NOT NULL, -- counted from 1
    id            TEXT,             -- the agent's own
    seq           INTEGER NOT NULL,
    started       INTEGER NOT NULL,
    ended         INTEGER,
    prompt        TEXT,
    events        INTEGER NOT NULL,
    tool_calls    INTEGER NOT NULL,
    failed        INTEGER NOT NULL,
    blocked       INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost          INTEGER NOT NULL,
    PRIMARY KEY (bus, session, turn)
) STRICT, WITHOUT ROWID;

CREATE TABLE p_tool_calls (
    bus        INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    scope      INTEGER NOT NULL,
    session    TEXT    NOT NULL,
    turn       INTEGER NOT NULL, -- 0 before the first turn
    call_id    TEXT,
    input_hash INTEGER NOT NULL, -- joins a result with its call where the agent sends no id
    tool       TEXT    NOT NULL,
    tool_class TEXT    NOT NULL,
    about      TEXT    NOT NULL, -- the command, path or address, shortened
    started    INTEGER NOT NULL,
    ended      INTEGER,
    result_seq INTEGER,
    took       INTEGER,
    status     TEXT    NOT NULL, -- ok, failed, denied, unknown, pending
    exit_code  INTEGER,
    error      TEXT,
    outcome    TEXT,             -- of the decision about it
    hook       TEXT,             -- the hook that decided
    ran_anyway INTEGER NOT NULL, -- 1 if it was blocked and ran all the same
    is_open    INTEGER NOT NULL, -- 1 while a result can still be joined with it
    PRIMARY KEY (bus, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX p_open_calls ON p_tool_calls (bus, session) WHERE is_open = 1;

CREATE TABLE p_decisions (
    bus        INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    cause      INTEGER,
    scope      INTEGER NOT NULL,
    session    TEXT    NOT NULL,
    time       INTEGER NOT NULL,
    tool       TEXT,
    tool_class TEXT,
    outcome    TEXT    NOT NULL,
    hook       TEXT,
    reason     TEXT,
    took       INTEGER,
    waited_for INTEGER NOT NULL,
    PRIMARY KEY (bus, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE p_verdicts (
    bus        INTEGER NOT NULL,
    seq        INTEGER NOT NULL, -- of the decision
    number     INTEGER NOT NULL, -- in the decision, from 1
    hook       TEXT    NOT NULL,
    verdict    TEXT    NOT NULL,
    shadow     INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    unapproved INTEGER NOT NULL,
    of_project INTEGER NOT NULL,
    reason     TEXT,             -- the failure if it failed
    exit_code  INTEGER,
    took       INTEGER,
    PRIMARY KEY (bus, seq, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE p_usage (
    bus                INTEGER NOT NULL,
    seq                INTEGER NOT NULL, -- the first event that told it
    scope              INTEGER NOT NULL,
    session            TEXT    NOT NULL,
    turn               INTEGER NOT NULL,
    time               INTEGER NOT NULL,
    covers             TEXT    NOT NULL, -- request or subagent
    input_tokens       INTEGER,
    output_tokens      INTEGER,
    cache_read_tokens  INTEGER,
    cache_write_tokens INTEGER,
    reasoning_tokens   INTEGER,
    total_tokens       INTEGER,
    cost               INTEGER,
    PRIMARY KEY (bus, seq)
) STRICT, WITHOUT ROWID;
