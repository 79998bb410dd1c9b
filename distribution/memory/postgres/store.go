// Package postgres stores memories in a PostgreSQL database, for any number of
// processes. A change is one statement, so one round trip: it moves the session's
// head from the version that the writer read and adds the messages, or does
// nothing. Durability is that of the server's synchronous_commit.
package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

const (
	defaultPrefix  = "qtype_"
	defaultConns   = 16
	connectTimeout = 5 * time.Second
)

// Store is a store.Store in one database. It is safe for concurrent use.
type Store struct {
	server *storage.Server
	config *pgxpool.Config

	preparing chan struct{} // holds a token while the tables are checked

	mu     sync.Mutex // guards what follows
	pool   *pgxpool.Pool
	ready  bool // the tables exist and are up to date
	closed bool
}

// Option changes how a store is opened.
type Option func(*Store)

// Prefix sets the prefix of the table names (default qtype_), so that several
// stores can share a database. It has at most 30 characters out of a to z, 0 to 9
// and _, the first of them a letter.
func Prefix(prefix string) Option { return func(s *Store) { s.server.Prefix = prefix } }

// Timeout bounds one call of the server (default 10 seconds), including
// connecting and the wait for a free connection.
func Timeout(d time.Duration) Option { return func(s *Store) { s.server.Timeout = d } }

// Open returns a store for postgres://user:password@host:5432/database. It
// connects when first used; the first write creates the tables.
//
// The URL may have libpq's parameters (sslmode, search_path, …), pgx's for the
// pool (pool_max_conns, default 16), and table_prefix and timeout for what Prefix
// and Timeout set.
func Open(address string, opts ...Option) (*Store, error) {
	server, err := storage.ParseServer(address, "table_prefix", defaultPrefix, "postgres", "postgresql")
	if err != nil {
		return nil, err
	}
	server.Location = storage.Location(strings.Replace(string(server.Location), "postgresql:", "postgres:", 1))
	s := &Store{server: server, preparing: make(chan struct{}, 1)}
	for _, o := range opts {
		o(s)
	}
	if !regexp.MustCompile(`^[a-z][a-z0-9_]{0,29}$`).MatchString(server.Prefix) {
		return nil, server.Location.Unavailable("invalid table_prefix: use at most 30 characters out of a-z, 0-9 and _, beginning with a letter")
	}
	if err := server.Check(); err != nil {
		return nil, err
	}
	if s.config, err = pgxpool.ParseConfig(server.DriverURL().String()); err != nil { // its text may hold the password
		return nil, server.Location.Unavailable("invalid URL: " + parseReason(err))
	}
	if !server.Query.Has("pool_max_conns") {
		s.config.MaxConns = defaultConns
	}
	conn := s.config.ConnConfig
	if conn.ConnectTimeout == 0 || !server.Query.Has("connect_timeout") {
		conn.ConnectTimeout = min(connectTimeout, server.Timeout)
	}
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "qtype"
	}
	return s, nil
}

// Location returns the server and the database, without credentials.
func (s *Store) Location() string { return string(s.server.Location) }

// Close closes all connections. The store must not be used afterwards.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.pool != nil {
		s.pool.Close()
		s.pool = nil
	}
	return nil
}

// open returns the pool, or nil if there are no tables and create is not set. The
// next call tries again after an error.
func (s *Store) open(ctx context.Context, create bool) (*pgxpool.Pool, error) {
	pool, ready, err := s.connections(ctx)
	if err != nil || ready {
		return pool, err
	}
	select {
	case s.preparing <- struct{}{}:
		defer func() { <-s.preparing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if pool, ready, err = s.connections(ctx); err != nil || ready { // another goroutine was faster
		return pool, err
	}
	found, err := s.prepare(ctx, pool, create)
	if err != nil || !found {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
	return pool, nil
}

// connections returns the pool, and whether the tables are up to date.
func (s *Store) connections(ctx context.Context) (*pgxpool.Pool, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, s.server.Location.Closed()
	}
	if s.pool == nil {
		pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), s.config)
		if err != nil {
			return nil, false, err
		}
		s.pool = pool
	}
	return s.pool, s.ready, nil
}

// use calls do within the store's timeout, and again after short trouble: do must be
// idempotent. If there are no tables and create is not set, use does nothing.
func (s *Store) use(ctx context.Context, create bool, do func(context.Context, *pgxpool.Pool) error) error {
	renewed := false
	return s.server.Retry(ctx, storage.Failures{Diagnose: diagnose, Trouble: trouble}, func(ctx context.Context) error {
		pool, err := s.open(ctx, create)
		if err == nil && pool != nil {
			err = do(ctx, pool)
		}
		if isLost(err) && ctx.Err() == nil && !renewed {
			s.renew()
			renewed = true
		}
		return err
	})
}

// renew drops all connections: if one is broken, so are the others.
func (s *Store) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pool != nil {
		s.pool.Reset()
	}
}

// maxKey is the size of the longest id, in bytes, that is indexed unchanged.
const maxKey = 256

// key returns the indexed form of an id: the id, or a marked digest if it is too
// long for an index. No valid UTF-8 begins with the mark; an id that does is
// replaced by its digest as well.
func key(id string) []byte {
	const mark = 0xff
	if len(id) <= maxKey && (id == "" || id[0] != mark) {
		return []byte(id)
	}
	sum := sha256.Sum256([]byte(id))
	return append([]byte{mark}, sum[:]...)
}

// withoutHost returns the text of a dial error without the address, which the
// message has already.
func withoutHost(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return textfmt.OneLine(op.Err.Error())
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return "unknown host " + strconv.Quote(dns.Name)
	}
	return textfmt.OneLine(err.Error())
}
