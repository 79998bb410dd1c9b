package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/qtype-dev/qtype/memory"
)

// migrations bring the tables from one version to the next; the table format
// says how many of them were applied. What is here is never changed: a new
// version is a new text. %[1]s is the prefix of the tables' names.
//
// Ids are arbitrary strings, and text can hold no NUL, so they are bytea, which
// also sorts them as Go does. An index holds no value over 2,704 bytes, so long
// ids are found by a key that is a digest (see key).
func migrations() []string {
	return []string{`
CREATE TABLE %[1]ssessions (
	id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	memory_key  bytea NOT NULL,
	session_key bytea NOT NULL,
	session     bytea NOT NULL,
	version     bigint NOT NULL,
	state       text NOT NULL, -- JSON
	change      bigint NOT NULL, -- a random number of the newest change, by which its writer knows it
	UNIQUE (memory_key, session_key)
) WITH (fillfactor = 60); -- room for the new head of a session in the page of the old one
CREATE INDEX %[1]ssessions_in_order ON %[1]ssessions (memory_key, (substring(session FROM 1 FOR 256)));
CREATE TABLE %[1]sentries (
	session_id  bigint NOT NULL,
	seq         bigint NOT NULL,
	turn        bigint NOT NULL,
	tokens      bigint NOT NULL,
	time        timestamptz NOT NULL,
	failed      boolean NOT NULL,
	message_key bytea NOT NULL,
	message     text NOT NULL, -- JSON, in the language's own form
	PRIMARY KEY (session_id, seq)
);
CREATE UNIQUE INDEX %[1]sentries_by_message ON %[1]sentries (session_id, message_key) WHERE NOT failed;
CREATE TABLE %[1]sevents (
	session_id bigint NOT NULL,
	id         bigint GENERATED ALWAYS AS IDENTITY,
	event      text NOT NULL, -- JSON
	PRIMARY KEY (session_id, id)
);
CREATE TABLE %[1]snamed (
	session_id bigint NOT NULL,
	name       bytea NOT NULL,
	value      bytea NOT NULL,
	PRIMARY KEY (session_id, name)
);
`, `
ALTER TABLE %[1]ssessions ADD COLUMN IF NOT EXISTS change bigint NOT NULL DEFAULT 0; -- the very first tables lack it
`}
}

// newer says that a later version of this program made the tables.
func (s *Store) newer(version int) error {
	return &memory.StoreError{Place: s.place, Problem: memory.TooNew,
		Message: fmt.Sprintf("a newer version of qtype wrote it (format %d, this one knows %d)", version, len(migrations()))}
}

// prepare finds the tables, or makes them where create is set, and brings them
// up to date. Without create, found is false where there are none.
func (s *Store) prepare(ctx context.Context, pool *pgxpool.Pool, create bool) (found bool, err error) {
	version, err := s.version(ctx, pool)
	switch {
	case err != nil:
		return false, err
	case version == len(migrations()):
		return true, nil
	case version > len(migrations()):
		return false, s.newer(version)
	case version == 0 && !create:
		return false, nil
	}
	return true, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return s.migrate(ctx, tx) })
}

// migrate applies what the tables lack. One process does at a time.
func (s *Store) migrate(ctx context.Context, tx pgx.Tx) error {
	lock := fnv.New64a()
	_, _ = lock.Write([]byte("qtype migrates " + s.prefix)) // never fails
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(lock.Sum64())); err != nil {
		return err
	}
	version, err := s.version(ctx, tx) // another process may have been faster
	if err != nil {
		return err
	}
	if version > len(migrations()) {
		return s.newer(version)
	}
	if version == 0 {
		if _, err := tx.Exec(ctx, "CREATE TABLE "+s.prefix+"format (version int NOT NULL); INSERT INTO "+s.prefix+"format VALUES (0)", pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	for _, statements := range migrations()[version:] {
		if _, err := tx.Exec(ctx, fmt.Sprintf(statements, s.prefix), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, "UPDATE "+s.prefix+"format SET version = $1", len(migrations()))
	return err
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// version is how many migrations the tables have seen, 0 where there are none.
func (s *Store) version(ctx context.Context, db querier) (int, error) {
	// to_regclass would be shorter, but it answers from a cache that does not see
	// what another process made while this one waited for the lock.
	const find = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class WHERE relname = $1 AND pg_catalog.pg_table_is_visible(oid))"
	var there bool
	if err := db.QueryRow(ctx, find, s.prefix+"format").Scan(&there); err != nil || !there {
		return 0, err
	}
	var version int
	err := db.QueryRow(ctx, "SELECT version FROM "+s.prefix+"format").Scan(&version)
	var fault *pgconn.PgError
	if errors.Is(err, pgx.ErrNoRows) || errors.As(err, &fault) && fault.Code == undefinedColumn {
		return 0, &memory.StoreError{Place: s.place, Problem: memory.Corrupt,
			Message: fmt.Sprintf("its table %sformat is another program's", s.prefix), Err: err}
	}
	return version, err
}
