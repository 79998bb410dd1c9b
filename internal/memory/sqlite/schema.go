package sqlite

// applicationID marks the file as ours in SQLite's header: "qtyp".
const applicationID = 0x71747970

// seqBits is how many low bits of an entry's primary key hold its Seq; the bits
// above hold the session's id. A session's history is thus one range of the
// table, in order, without an index: 2^36 messages in each of 2^27 sessions.
const seqBits = 36

// migrations returns the statements that upgrade the tables by one version each.
// Never change one: append another.
func migrations() []string {
	return []string{`
CREATE TABLE sessions (
	id      INTEGER PRIMARY KEY,
	memory  TEXT NOT NULL,
	session TEXT NOT NULL,
	version INTEGER NOT NULL,
	state   TEXT NOT NULL, -- JSON
	UNIQUE (memory, session)
);
CREATE TABLE entries (
	id         INTEGER PRIMARY KEY, -- session_id << 36 | seq
	session_id INTEGER NOT NULL,
	turn       INTEGER NOT NULL,
	tokens     INTEGER NOT NULL,
	time       INTEGER NOT NULL, -- microseconds since 1970
	failed     INTEGER NOT NULL,
	message_id TEXT NOT NULL,
	message    TEXT NOT NULL -- JSON
);
CREATE UNIQUE INDEX entries_by_message ON entries (session_id, message_id) WHERE failed = 0;
CREATE TABLE events (
	id         INTEGER PRIMARY KEY,
	session_id INTEGER NOT NULL,
	event      TEXT NOT NULL -- JSON
);
CREATE INDEX events_by_session ON events (session_id);
CREATE TABLE named (
	session_id INTEGER NOT NULL,
	name       TEXT NOT NULL,
	value      BLOB NOT NULL,
	PRIMARY KEY (session_id, name)
) WITHOUT ROWID;
`}
}
