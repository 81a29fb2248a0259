-- What `hookbus prune` removes on purpose. Each removal is told by a row of kind `log.pruned`, written in the same
-- transaction, so that `hookbus verify` knows it from what another program removed.

-- The SHA-256 of a payload that was removed, which the hash of the row covers. The column `payload` is then '{}'.
ALTER TABLE events ADD COLUMN digest BLOB;

-- Rows that were removed as a whole.
CREATE TABLE removed (
    first  INTEGER PRIMARY KEY, -- the first row of a range
    last   INTEGER NOT NULL,    -- and the last one
    hash   BLOB    NOT NULL,    -- of the last one: the row after it follows from this
    record INTEGER NOT NULL     -- the row that tells of it; covers the hash before and after each range
) STRICT;

CREATE TRIGGER removed_is_never_changed BEFORE UPDATE ON removed
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER removed_is_never_deleted BEFORE DELETE ON removed
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
