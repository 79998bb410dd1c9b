-- The schema of SQLite's format 1, for the other files. Never change it.
PRAGMA user_version = 1; PRAGMA application_id = 1903458672;
CREATE TABLE sessions (id INTEGER PRIMARY KEY, memory TEXT NOT NULL, session TEXT NOT NULL, version INTEGER NOT NULL, state TEXT NOT NULL, UNIQUE (memory, session));
CREATE TABLE entries (id INTEGER PRIMARY KEY, session_id INTEGER NOT NULL, turn INTEGER NOT NULL, tokens INTEGER NOT NULL, time INTEGER NOT NULL, failed INTEGER NOT NULL, message_id TEXT NOT NULL, message TEXT NOT NULL);
CREATE TABLE events (id INTEGER PRIMARY KEY, session_id INTEGER NOT NULL, event TEXT NOT NULL);
CREATE TABLE named (session_id INTEGER NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (session_id, name)) WITHOUT ROWID;
CREATE UNIQUE INDEX entries_by_message ON entries (session_id, message_id) WHERE failed = 0;
CREATE INDEX events_by_session ON events (session_id);
