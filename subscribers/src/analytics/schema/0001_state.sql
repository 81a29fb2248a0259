-- What a writer needs to go on where it was: kept in the same transactions as the projections, so that a kill loses
-- nothing and counts nothing twice.

CREATE TABLE meta (
    only   INTEGER PRIMARY KEY CHECK (only = 1),
    build  BLOB    NOT NULL, -- another one after each rebuild: a writer that knows an earlier one reads its position again
    writes INTEGER NOT NULL  -- counts transactions: if it is not what a writer left, another process has written
) STRICT;

-- How far each bus is: rows at or below `seq` are counted.
CREATE TABLE buses (
    bus  INTEGER PRIMARY KEY,
    id   TEXT    NOT NULL UNIQUE, -- the id of the bus, a UUID
    seq  INTEGER NOT NULL,
    row  BLOB    NOT NULL, -- the id of that row: another one there means that the log was restored and written on
    host TEXT    NOT NULL  -- the machine, from the last row that tells it
) STRICT;

-- Where the stream of NATS was read to.
CREATE TABLE stream (
    only     INTEGER PRIMARY KEY CHECK (only = 1),
    sequence INTEGER NOT NULL,
    id       BLOB    NOT NULL
) STRICT;

-- What figures are told apart by.
CREATE TABLE scopes (
    scope   INTEGER PRIMARY KEY,
    bus     INTEGER NOT NULL,
    agent   TEXT    NOT NULL,
    project TEXT    NOT NULL,
    model   TEXT    NOT NULL,
    host    TEXT    NOT NULL,
    UNIQUE (bus, agent, project, model, host)
) STRICT;
