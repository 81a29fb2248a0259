-- What `hookbus scan --redact` replaces on purpose. Each redaction is told by a row of kind `log.redacted`, written in the
-- same transaction, so that `hookbus verify` knows it from what another program changed.

-- The SHA-256 of the payload that took the place of the recorded one; that of the recorded one is in `digest`, if the
-- payload was redacted. It stays if the payload is removed later.
ALTER TABLE events ADD COLUMN redacted BLOB;

-- 1 if `name` or `context` were redacted too. The hash of the row covers them as they were, so that only the record tells
-- whether the row is right.
ALTER TABLE events ADD COLUMN redacted_columns INTEGER;
