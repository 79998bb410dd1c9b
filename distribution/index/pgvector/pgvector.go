// Package pgvector is the index in a table of PostgreSQL with the extension vector. The
// table is the one that LlamaIndex creates, so that both programs can use it.
package pgvector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec"
)

// Limits of the database.
const (
	maxConns       = 8
	connectTimeout = 10 * time.Second
	callTimeout    = 60 * time.Second
	batchSize      = 500 // rows of one statement
	maxIdentifier  = 63  // bytes of PostgreSQL's names
)

// Config describes a table.
type Config struct {
	Arguments  *spec.PGVectorArguments // the arguments of the index in the document
	Name       string                  // of the index, the default of the table's name
	Dimensions int                     // length of the vectors
	User       string                  // of the database; empty for that of the arguments
	Password   string                  // of the user
}

// Index is a table. It is safe for concurrent use.
type Index struct {
	Config
	pool     *pgxpool.Pool
	password string
	bare     string // the name of the table without schema
	table    string // its quoted name with the schema
	vector   string // the type of the vectors

	mu    sync.Mutex
	state *table // nil until the table is known to exist
}

// table is what statements must know of the table.
type table struct {
	textColumn bool // it has text_search_tsv
	iterative  bool // the extension can continue an approximate search until enough rows satisfy a filter
}

// New returns the index of a table, which the first Put creates. It connects when it is
// used first.
func New(c Config) (*Index, error) {
	a := c.Arguments
	name := a.TableName
	if name == "" {
		name = c.Name
	}
	x := &Index{Config: c, bare: "data_" + strings.ToLower(name), vector: "vector"}
	if a.UseHalfvec {
		x.vector = "halfvec"
	}
	if len(x.bare) > maxIdentifier-len("_embedding_idx") {
		return nil, fmt.Errorf("the table name %q is too long: use at most %d bytes", name, maxIdentifier-len("data_")-len("_embedding_idx"))
	}
	x.table = pgx.Identifier{a.SchemaName, x.bare}.Sanitize()
	config, err := poolConfig(c)
	if err != nil {
		return nil, err
	}
	x.password = config.ConnConfig.Password
	if x.pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		return nil, x.failure(err)
	}
	return x, nil
}

// poolConfig returns the settings of the connections.
func poolConfig(c Config) (*pgxpool.Config, error) {
	a := c.Arguments
	text := a.ConnectionString
	if scheme, rest, ok := strings.Cut(text, "://"); ok { // SQLAlchemy's schemes name a driver
		scheme, _, _ = strings.Cut(scheme, "+")
		text = scheme + "://" + rest
	}
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, errors.New("args: connection_string is not a valid URL such as postgres://HOST:5432/DATABASE") // err may contain the password
	}
	conn := config.ConnConfig
	for _, set := range []struct {
		to   *string
		from string
	}{{&conn.Host, a.Host}, {&conn.Database, a.Database}, {&conn.User, a.User}, {&conn.Password, a.Password}, {&conn.User, c.User}, {&conn.Password, c.Password}} {
		if set.from != "" {
			*set.to = set.from
		}
	}
	if a.Port != 0 {
		conn.Port = uint16(a.Port) // CheckArguments checks the range
	}
	if a.Host != "" || a.Port != 0 {
		conn.Fallbacks = nil // they are for the address of the environment
	}
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = connectTimeout
	}
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "qtype"
	}
	if !strings.Contains(a.ConnectionString, "pool_max_conns") {
		config.MaxConns = maxConns
	}
	return config, nil
}

// failure returns an error of the driver as one line without the password.
func (x *Index) failure(err error) error {
	if err == nil {
		return nil
	}
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fmt.Errorf("PostgreSQL: %s", httpx.Scrub(httpx.SingleLine(server.Message, 300), x.password))
	}
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	return fmt.Errorf("PostgreSQL: %s", httpx.Scrub(httpx.Reason(err), x.password))
}

// isMissing reports whether an error means that the table does not exist.
func isMissing(err error) bool {
	server, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (server.Code == "42P01" || server.Code == "3F000") // undefined_table, invalid_schema_name
}

// find returns the state of the table, nil if it does not exist.
func (x *Index) find(ctx context.Context) (*table, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.state != nil {
		return x.state, nil
	}
	const statement = `SELECT
		coalesce(bool_or(a.attname = 'text_search_tsv'), false),
		coalesce(max(a.atttypmod) FILTER (WHERE a.attname = 'embedding'), 0),
		count(*) > 0,
		coalesce((SELECT (string_to_array(extversion, '.'))[1:2]::int[] >= '{0,8}' FROM pg_extension WHERE extname = 'vector'), false)
	FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped`
	var found table
	var dimensions int
	var exists bool
	if err := x.pool.QueryRow(ctx, statement, x.Arguments.SchemaName, x.bare).Scan(&found.textColumn, &dimensions, &exists, &found.iterative); err != nil {
		return nil, x.failure(err)
	}
	if !exists {
		return nil, nil
	}
	if dimensions > 0 && dimensions != x.Dimensions {
		return nil, fmt.Errorf("the table %s has vectors of %d numbers, the embedding model %d", x.table, dimensions, x.Dimensions)
	}
	x.state = &found
	return x.state, nil
}

// forget makes the next call look for the table again.
func (x *Index) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.state = nil
}

// create returns the state of the table, which it creates if it does not exist.
func (x *Index) create(ctx context.Context) (*table, error) {
	found, err := x.find(ctx)
	if found != nil || err != nil {
		return found, err
	}
	if !x.Arguments.PerformSetup {
		return nil, fmt.Errorf("the table %s does not exist, and perform_setup is false", x.table)
	}
	err = pgx.BeginFunc(ctx, x.pool, func(tx pgx.Tx) error {
		// Concurrent statements that create the same object fail even with IF NOT EXISTS.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('qtype create index'))"); err != nil {
			return err
		}
		for _, statement := range x.setup() {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, x.failure(err)
	}
	return x.find(ctx)
}

// setup returns the statements that create the table.
func (x *Index) setup() []string {
	a := x.Arguments
	metadata := "json"
	if a.UseJSONB {
		metadata = "jsonb"
	}
	columns := fmt.Sprintf(`id bigserial PRIMARY KEY, text varchar NOT NULL, metadata_ %s, node_id varchar, embedding %s(%d)`, metadata, x.vector, x.Dimensions)
	if a.HybridSearch {
		columns += fmt.Sprintf(`, text_search_tsv tsvector GENERATED ALWAYS AS (to_tsvector(%s, text)) STORED`, literal(a.TextSearchConfig))
	}
	name := func(suffix string) string { return pgx.Identifier{x.bare + suffix}.Sanitize() }
	all := []string{
		"CREATE EXTENSION IF NOT EXISTS vector",
		"CREATE SCHEMA IF NOT EXISTS " + pgx.Identifier{a.SchemaName}.Sanitize(),
		fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s)", x.table, columns),
		fmt.Sprintf(`CREATE INDEX IF NOT EXISTS %s ON %s (node_id COLLATE "C")`, name("_node_idx"), x.table),
		fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s ON %s ((metadata_->>'ref_doc_id'))", name("_ref_idx"), x.table),
	}
	if a.HybridSearch {
		all = append(all, fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s ON %s USING gin (text_search_tsv)", name("_text_idx"), x.table))
	}
	if h := newHNSW(a.HNSWKwargs); h != nil {
		all = append(all, fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s ON %s USING hnsw (embedding %s) WITH (m = %d, ef_construction = %d)",
			name("_embedding_idx"), x.table, x.vector+"_cosine_ops", h.M, h.EFConstruction))
	}
	return all
}

// literal returns a text as a literal of SQL.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// newHNSW returns the settings of an approximate index, nil for none.
func newHNSW(kwargs map[string]any) *spec.HNSWArguments {
	if len(kwargs) == 0 {
		return nil
	}
	h := &spec.HNSWArguments{}
	spec.DecodeArguments(kwargs, h) // CheckArguments has reported the errors
	return h
}
