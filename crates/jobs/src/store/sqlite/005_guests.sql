-- A guest has only a token to come back with. Once it has a password it is no guest any more.
ALTER TABLE jobs_user ADD COLUMN is_guest INTEGER NOT NULL DEFAULT 0;
UPDATE jobs_user SET is_guest = 1 WHERE password IS NULL AND email LIKE '%@guest.user';
CREATE INDEX jobs_user_guest ON jobs_user (created_at) WHERE is_guest AND password IS NULL;
