-- Sums by hour (hours since 1970, UTC) and scope: what `hookbus stats` reads. The columns are those of figures.rs.

CREATE TABLE f_activity (
    hour               INTEGER NOT NULL,
    scope              INTEGER NOT NULL,
    events             INTEGER NOT NULL,
    sessions           INTEGER NOT NULL, -- that began
    turns              INTEGER NOT NULL,
    model_requests     INTEGER NOT NULL,
    tool_calls         INTEGER NOT NULL,
    failed             INTEGER NOT NULL,
    denied             INTEGER NOT NULL,
    decisions          INTEGER NOT NULL,
    blocked            INTEGER NOT NULL,
    asked              INTEGER NOT NULL,
    rewritten          INTEGER NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cost               INTEGER NOT NULL,
    PRIMARY KEY (hour, scope)
) STRICT, WITHOUT ROWID;

CREATE TABLE f_tools (
    hour       INTEGER NOT NULL,
    scope      INTEGER NOT NULL,
    tool       TEXT    NOT NULL,
    tool_class TEXT    NOT NULL,
    calls      INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    denied     INTEGER NOT NULL,
    unknown    INTEGER NOT NULL, -- a result that does not tell whether it failed
    blocked    INTEGER NOT NULL,
    asked      INTEGER NOT NULL,
    timed      INTEGER NOT NULL, -- calls with a known span
    took       INTEGER NOT NULL, -- and the sum of their spans
    PRIMARY KEY (hour, scope, tool, tool_class)
) STRICT, WITHOUT ROWID;

CREATE TABLE f_hooks (
    hour       INTEGER NOT NULL,
    scope      INTEGER NOT NULL,
    hook       TEXT    NOT NULL,
    shadow     INTEGER NOT NULL,
    calls      INTEGER NOT NULL,
    blocked    INTEGER NOT NULL,
    asked      INTEGER NOT NULL,
    rewritten  INTEGER NOT NULL,
    context    INTEGER NOT NULL,
    allowed    INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    unapproved INTEGER NOT NULL,
    timed      INTEGER NOT NULL,
    took       INTEGER NOT NULL,
    PRIMARY KEY (hour, scope, hook, shadow)
) STRICT, WITHOUT ROWID;

-- How often a hook took at most so long: `up_to` is in microseconds, and the last bucket has 9223372036854775807.
CREATE TABLE f_latency (
    hour   INTEGER NOT NULL,
    scope  INTEGER NOT NULL,
    hook   TEXT    NOT NULL,
    shadow INTEGER NOT NULL,
    up_to  INTEGER NOT NULL,
    calls  INTEGER NOT NULL,
    PRIMARY KEY (hour, scope, hook, shadow, up_to)
) STRICT, WITHOUT ROWID;

-- In the order of what they are summed up by: a million events can name a few hundred thousand of them.
CREATE TABLE f_files (
    hour    INTEGER NOT NULL,
    scope   INTEGER NOT NULL,
    session TEXT    NOT NULL,
    path    TEXT    NOT NULL,
    access  TEXT    NOT NULL, -- read, write, delete
    uses    INTEGER NOT NULL,
    PRIMARY KEY (path, session, hour, scope, access)
) STRICT, WITHOUT ROWID;

CREATE TABLE f_hosts (
    hour    INTEGER NOT NULL,
    scope   INTEGER NOT NULL,
    session TEXT    NOT NULL,
    host    TEXT    NOT NULL,
    uses    INTEGER NOT NULL,
    PRIMARY KEY (host, session, hour, scope)
) STRICT, WITHOUT ROWID;
