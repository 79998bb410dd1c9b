package embedded

import (
	"context"
	"database/sql"
	"errors"

	"github.com/qtype-dev/qtype/internal/sqlitefile"
)

// applicationID marks the files of this package.
const applicationID = 0x71740002

// conn holds the connections of a file.
type conn = sqlitefile.Conn[*statements]

// statements are prepared once, with what was read from the file. A file that replaces it has its
// own.
type statements struct {
	find, insert, vector, code, deleted, addTerm *sql.Stmt // of writes
	removeEntry, removeVector, removeCode        *sql.Stmt
	addWords, removeWords                        *sql.Stmt
	addLanguage                                  *sql.Stmt
	state, stored, languages                     *sql.Stmt // of reads

	cache cache
	vocab vocabulary
	allow allowed
}

// The table of codes, which clustering writes again.
const (
	codesTable = "CREATE TABLE codes (cell INTEGER NOT NULL, entry INTEGER NOT NULL, code BLOB NOT NULL, PRIMARY KEY (cell, entry)) WITHOUT ROWID"
	codesIndex = "CREATE UNIQUE INDEX codes_entry ON codes (entry)"
)

// The tables. A replaced entry gets a new number: a process reads the numbers above the
// last known one, and forgets the deletions.
//
// codes are the vectors as scans read them. An index without clusters has parts of
// partSize numbers, which are negative; clusters are positive. vectors are the exact ones
// of codes that are not.
//
// words has one row for each text of an entry: its number is that of the entry, shifted,
// and that of the field. It keeps no text, only where the words are.
const schema = `
CREATE TABLE state (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	generation INTEGER NOT NULL, -- changes when all that was read is void
	writes INTEGER NOT NULL,     -- changes with every write
	dimensions INTEGER NOT NULL, -- 0 for an index without vectors
	settings TEXT NOT NULL,      -- what cannot change while there are entries; empty for none
	clustered INTEGER NOT NULL   -- entries when the clusters were made
);
INSERT INTO state VALUES (1, 1, 1, 0, '', 0);
CREATE TABLE entries (
	entry INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	document TEXT NOT NULL,
	text TEXT NOT NULL,
	metadata TEXT NOT NULL, -- JSON; empty for none
	hash TEXT NOT NULL
);
CREATE INDEX entries_document ON entries (document);
CREATE TABLE vectors (entry INTEGER PRIMARY KEY, vector BLOB NOT NULL);
` + codesTable + ";" + codesIndex + `;
CREATE TABLE clusters (cell INTEGER PRIMARY KEY, center BLOB NOT NULL);
CREATE TABLE deletions (number INTEGER PRIMARY KEY AUTOINCREMENT, entry INTEGER NOT NULL, cell INTEGER NOT NULL);
CREATE TABLE fields (field INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE terms (number INTEGER PRIMARY KEY AUTOINCREMENT, term TEXT NOT NULL UNIQUE);
CREATE VIRTUAL TABLE words USING fts5(content, content='', contentless_delete=1, tokenize='ascii');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, 'row');
`

// modelsTable has which model made the vectors of the entries from a number on. An index of an earlier
// version has no rows until the next write: its vectors are taken for vectors of the model that writes first.
const modelsTable = "CREATE TABLE models (first INTEGER PRIMARY KEY, model TEXT NOT NULL)"

// languagesTable has the languages of the texts whose words are stored as stems.
const languagesTable = "CREATE TABLE languages (name TEXT PRIMARY KEY) WITHOUT ROWID"

// clearStatements empties the tables.
const clearStatements = `
DELETE FROM entries; DELETE FROM vectors; DELETE FROM codes; DELETE FROM clusters; DELETE FROM deletions;
DELETE FROM fields; DELETE FROM terms; DELETE FROM models; DELETE FROM languages;
INSERT INTO words(words) VALUES ('delete-all');
UPDATE state SET generation = generation + 1, writes = writes + 1, dimensions = 0, settings = '', clustered = 0;
`

// newFile returns the file of an index. Rows of codes fit in pages of 8 KiB.
func newFile(opts Options) *sqlitefile.File[*statements] {
	return sqlitefile.New(opts.Path, sqlitefile.Config[*statements]{
		ApplicationID: applicationID,
		Migrations:    []string{schema, modelsTable, languagesTable},
		PageSize:      8192,
		Pragmas:       []string{"journal_mode(WAL)", "synchronous(FULL)", "cache_size(-16000)"},
		Replaceable:   true,
		Prepare: func(ctx context.Context, write, read *sql.DB) (*statements, error) {
			s, err := prepare(ctx, write, read)
			s.cache.limit = opts.MemoryLimit
			return s, err
		},
	})
}

func prepare(ctx context.Context, write, read *sql.DB) (*statements, error) {
	s := &statements{}
	var errs []error
	for _, p := range []struct {
		to   **sql.Stmt
		db   *sql.DB
		text string
	}{
		{&s.find, write, "SELECT e.entry, ifnull(c.cell, 0) FROM entries e LEFT JOIN codes c USING (entry) WHERE id = ?"},
		{&s.insert, write, "INSERT INTO entries (id, document, text, metadata, hash) VALUES (?, ?, ?, ?, ?)"},
		{&s.vector, write, "INSERT INTO vectors VALUES (?, ?)"},
		{&s.code, write, "INSERT INTO codes VALUES (?, ?, ?)"},
		{&s.deleted, write, "INSERT INTO deletions (entry, cell) VALUES (?, ?)"},
		{&s.removeEntry, write, "DELETE FROM entries WHERE entry = ?"},
		{&s.removeVector, write, "DELETE FROM vectors WHERE entry = ?"},
		{&s.removeCode, write, "DELETE FROM codes WHERE cell = ? AND entry = ?"},
		{&s.addTerm, write, "INSERT OR IGNORE INTO terms (term) VALUES (?)"},
		{&s.addWords, write, "INSERT INTO words (rowid, content) VALUES (?, ?)"},
		{&s.removeWords, write, "DELETE FROM words WHERE rowid BETWEEN ? AND ?"},
		{&s.addLanguage, write, "INSERT OR IGNORE INTO languages VALUES (?)"},
		{&s.languages, read, "SELECT name FROM languages ORDER BY name"},
		{&s.state, read, "SELECT generation, writes, dimensions, settings, clustered FROM state"},
		{&s.stored, read, "SELECT id, document, text, metadata, hash FROM entries WHERE entry = ?"},
	} {
		var err error
		if *p.to, err = p.db.PrepareContext(ctx, p.text); err != nil {
			errs = append(errs, err)
		}
	}
	return s, errors.Join(errs...)
}

// state is the row of the table of that name.
type state struct {
	generation, writes int64
	dimensions         int
	settings           string
	clustered          int64
}

func readState(ctx context.Context, s *sql.Stmt) (st state, err error) {
	err = s.QueryRowContext(ctx).Scan(&st.generation, &st.writes, &st.dimensions, &st.settings, &st.clustered)
	return st, err
}
