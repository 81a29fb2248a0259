-- Where the rows of an archive come from, which is put together from the logs of other buses.
-- Empty in a log that events are appended to.
CREATE TABLE origins (
    seq       INTEGER PRIMARY KEY, -- the row here
    bus       BLOB    NOT NULL,
    bus_seq   INTEGER NOT NULL,    -- its place there, which its hash covers
    bus_cause INTEGER              -- and the place there of the event that a decision is about
) STRICT;

CREATE UNIQUE INDEX origins_by_place ON origins (bus, bus_seq);

CREATE TRIGGER origins_are_never_changed BEFORE UPDATE ON origins
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER origins_are_never_deleted BEFORE DELETE ON origins
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
