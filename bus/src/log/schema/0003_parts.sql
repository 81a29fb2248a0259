-- What payloads have in common, each thing once.
CREATE TABLE parts (
    id   INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again; larger than the ids of the parts that it refers to
    key  BLOB    NOT NULL, -- 16 bytes of a BLAKE3 hash of its content
    data BLOB    NOT NULL  -- compressed where that pays
) STRICT;

CREATE UNIQUE INDEX parts_by_key ON parts (key);

CREATE TRIGGER parts_are_never_changed BEFORE UPDATE ON parts
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER parts_are_never_deleted BEFORE DELETE ON parts
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

-- What a long payload consists of: a few bytes, and references to parts. The column `payload` is then '{}', and
-- `hookbus log --raw` prints the payload whole.
ALTER TABLE events ADD COLUMN packed BLOB;
