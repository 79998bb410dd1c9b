package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/qtype-dev/qtype/memory/store"
)

// migrations returns the statements that upgrade the tables by one version each;
// the table format counts those applied. Never change one: append another.
// %[1]s is the prefix of the table names.
//
// Ids are arbitrary strings. They are bytea because text cannot hold NUL, and
// because bytea sorts as Go strings do. An index holds values of at most 2,704
// bytes, so the key of a long id is a digest (see key).
func migrations() []string {
	return []string{`
CREATE TABLE %[1]ssessions (
	id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	memory_key  bytea NOT NULL,
	session_key bytea NOT NULL,
	session     bytea NOT NULL,
	version     bigint NOT NULL,
	state       text NOT NULL, -- JSON
	change      bigint NOT NULL, -- random number that identifies the newest change
	UNIQUE (memory_key, session_key)
) WITH (fillfactor = 60); -- so that the new version of a head fits into the page of the old one
CREATE INDEX %[1]ssessions_in_order ON %[1]ssessions (memory_key, (substring(session FROM 1 FOR 256)));
CREATE TABLE %[1]sentries (
	session_id  bigint NOT NULL,
	seq         bigint NOT NULL,
	turn        bigint NOT NULL,
	tokens      bigint NOT NULL,
	time        timestamptz NOT NULL,
	failed      boolean NOT NULL,
	message_key bytea NOT NULL,
	message     text NOT NULL, -- JSON
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
ALTER TABLE %[1]ssessions ADD COLUMN IF NOT EXISTS change bigint NOT NULL DEFAULT 0; -- missing in tables of the first release
`}
}

func (s *Store) tooNew(version int) error {
	return s.server.Location.Error(store.TooNew,
		fmt.Sprintf("written by a newer version of qtype (format %d, this version supports up to %d)", version, len(migrations())), nil)
}

// prepare upgrades the tables. If there are none it creates them or, without
// create, reports that it found none.
func (s *Store) prepare(ctx context.Context, pool *pgxpool.Pool, create bool) (found bool, err error) {
	version, err := s.version(ctx, pool)
	switch {
	case err != nil:
		return false, err
	case version == len(migrations()):
		return true, nil
	case version > len(migrations()):
		return false, s.tooNew(version)
	case version == 0 && !create:
		return false, nil
	}
	return true, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return s.migrate(ctx, tx) })
}

// migrate applies the missing migrations, in one process at a time.
func (s *Store) migrate(ctx context.Context, tx pgx.Tx) error {
	lock := fnv.New64a()
	_, _ = lock.Write([]byte("qtype migrates " + s.server.Prefix)) // never returns an error
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(lock.Sum64())); err != nil {
		return err
	}
	version, err := s.version(ctx, tx) // another process may have been faster
	if err != nil {
		return err
	}
	if version > len(migrations()) {
		return s.tooNew(version)
	}
	if version == 0 {
		if _, err := tx.Exec(ctx, "CREATE TABLE "+s.server.Prefix+"format (version int NOT NULL); INSERT INTO "+s.server.Prefix+"format VALUES (0)", pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	for _, statements := range migrations()[version:] {
		if _, err := tx.Exec(ctx, fmt.Sprintf(statements, s.server.Prefix), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, "UPDATE "+s.server.Prefix+"format SET version = $1", len(migrations()))
	return err
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// version returns how many migrations were applied, 0 if there are no tables.
func (s *Store) version(ctx context.Context, db querier) (int, error) {
	// to_regclass would be shorter, but its cache does not see a table that another
	// process created while this one waited for the lock.
	const find = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class WHERE relname = $1 AND pg_catalog.pg_table_is_visible(oid))"
	var exists bool
	if err := db.QueryRow(ctx, find, s.server.Prefix+"format").Scan(&exists); err != nil || !exists {
		return 0, err
	}
	var version int
	err := db.QueryRow(ctx, "SELECT version FROM "+s.server.Prefix+"format").Scan(&version)
	var server *pgconn.PgError
	if errors.Is(err, pgx.ErrNoRows) || errors.As(err, &server) && server.Code == undefinedColumn {
		return 0, s.server.Location.Error(store.Corrupt, "another program owns its table "+s.server.Prefix+"format", err)
	}
	return version, err
}
