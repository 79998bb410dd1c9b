// Package postgres keeps memories in a PostgreSQL database, for any number of
// processes at once. A change is one statement and so one round trip: the head
// moves only from the version that the writer read, and what was said goes in
// with it or not at all. It is as durable as the server's synchronous_commit says.
package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/qtype-dev/qtype/internal/paging"
	"github.com/qtype-dev/qtype/memory"
)

const (
	defaultPrefix  = "qtype_"
	defaultTimeout = 10 * time.Second
	defaultConns   = 16
	connectTimeout = 5 * time.Second
)

// Store is a memory.Store in one database. It is safe for concurrent use.
type Store struct {
	place   string // without credentials
	prefix  string // of the tables' names
	timeout time.Duration
	config  *pgxpool.Config

	preparing chan struct{} // holds a token while somebody sees to the tables

	mu     sync.Mutex // guards what follows
	pool   *pgxpool.Pool
	ready  bool // the tables are there and up to date
	closed bool
}

// Option changes how a store is opened.
type Option func(*Store)

// Prefix begins the names of the tables, qtype_ where it is not given: several
// stores live in one database beside each other. It consists of a to z, 0 to 9
// and _, begins with a letter and has at most 30 of them.
func Prefix(prefix string) Option { return func(s *Store) { s.prefix = prefix } }

// Timeout is how long one use of the server may take, connecting and waiting
// for a free connection included; 10 seconds where it is not given.
func Timeout(d time.Duration) Option { return func(s *Store) { s.timeout = d } }

// Open names the database: postgres://user:password@host:5432/database. Nothing
// is connected to before the first use, and the first write makes the tables.
//
// The URL may carry libpq's parameters (sslmode, search_path, …), pgx's for the
// pool (pool_max_conns, 16 where it is not given), and table_prefix and timeout
// for what Prefix and Timeout set.
func Open(address string, opts ...Option) (*Store, error) {
	s := &Store{place: "postgres", prefix: defaultPrefix, timeout: defaultTimeout, preparing: make(chan struct{}, 1)}
	u, err := url.Parse(address)
	if err != nil { // the error's text holds the password
		return nil, s.wrong("its URL cannot be read: is everything in the password percent-encoded?")
	}
	if u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, s.wrong("its URL begins with postgres:// or postgresql://")
	}
	s.place = location(u)
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, s.wrong("the parameters of its URL cannot be read: is everything in them percent-encoded?")
	}
	if err := s.read(parameters); err != nil {
		return nil, err
	}
	u.RawQuery = parameters.Encode()
	for _, o := range opts {
		o(s)
	}
	switch {
	case !regexp.MustCompile(`^[a-z][a-z0-9_]{0,29}$`).MatchString(s.prefix):
		return nil, s.wrong("the prefix of its tables consists of a to z, 0 to 9 and _, begins with a letter and has at most 30 of them")
	case s.timeout <= 0:
		return nil, s.wrong("its timeout must be more than 0, such as 10s")
	}
	if s.config, err = pgxpool.ParseConfig(u.String()); err != nil { // this text may hold the password too
		return nil, s.wrong("its URL cannot be used: " + reason(err))
	}
	if !parameters.Has("pool_max_conns") {
		s.config.MaxConns = defaultConns
	}
	if s.config.ConnConfig.ConnectTimeout == 0 || !parameters.Has("connect_timeout") {
		s.config.ConnConfig.ConnectTimeout = min(connectTimeout, s.timeout)
	}
	if s.config.ConnConfig.RuntimeParams["application_name"] == "" {
		s.config.ConnConfig.RuntimeParams["application_name"] = "qtype"
	}
	return s, nil
}

func (s *Store) wrong(message string) error {
	return &memory.StoreError{Place: s.place, Problem: memory.Unavailable, Message: message}
}

// read takes our own parameters out of the URL's.
func (s *Store) read(parameters url.Values) error {
	if parameters.Has("table_prefix") {
		s.prefix = parameters.Get("table_prefix")
		parameters.Del("table_prefix")
	}
	if text := parameters.Get("timeout"); parameters.Has("timeout") {
		d, err := time.ParseDuration(text)
		if err != nil {
			return s.wrong("its timeout must be a duration such as 10s")
		}
		s.timeout = d
		parameters.Del("timeout")
	}
	return nil
}

// location names the database for a person: neither user nor password nor parameters.
func location(u *url.URL) string {
	return (&url.URL{Scheme: "postgres", Host: u.Host, Path: u.Path}).String()
}

// Location is the server and the database, without credentials.
func (s *Store) Location() string { return s.place }

// Close closes all connections. Nothing is called after it.
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

// open is the pool; nil where create is not set and there are no tables. A
// failure is not remembered: the next call tries again.
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
	if pool, ready, err = s.connections(ctx); err != nil || ready { // somebody else saw to it
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

// connections is the pool, and whether the tables are known to be there.
func (s *Store) connections(ctx context.Context) (*pgxpool.Pool, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, s.wrong("it was closed")
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

// use does something with the server, within the store's timeout. Where the
// connection is lost it tries once more, on a new one: everything that is done
// here may be done twice. Do is not called where the store is empty and create
// is not set.
func (s *Store) use(ctx context.Context, create bool, do func(context.Context, *pgxpool.Pool) error) error {
	bounded, cancel := paging.Within(ctx, s.timeout)
	defer cancel()
	attempt := func() error {
		pool, err := s.open(bounded, create)
		if err != nil || pool == nil {
			return err
		}
		return do(bounded, pool)
	}
	err := attempt()
	if lost(err) && bounded.Err() == nil {
		s.renew()
		err = attempt()
	}
	return s.explain(bounded, err)
}

// renew lets go of all connections: where one is dead, so are the others.
func (s *Store) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pool != nil {
		s.pool.Reset()
	}
}

// longest is the most bytes of an id that go into an index as they are.
const longest = 256

// key is what an id is found by: the id, or the digest of one that is too long
// for an index. No valid UTF-8 begins with the byte that marks a digest, and
// what begins with it all the same is digested.
func key(id string) []byte {
	const mark = 0xff
	if len(id) <= longest && (id == "" || id[0] != mark) {
		return []byte(id)
	}
	sum := sha256.Sum256([]byte(id))
	return append([]byte{mark}, sum[:]...)
}

// withoutHost is err's text for a person where a dial failed: the place is named already.
func withoutHost(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return oneLine(op.Err)
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return "there is no host " + strconv.Quote(dns.Name)
	}
	return oneLine(err)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
