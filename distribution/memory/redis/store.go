// Package redis stores memories in Redis 7 or Valkey, for any number of
// processes. A change is one script on the server: it moves the session's head
// from the version that the writer read and adds the messages, or does nothing.
// Durability is that of the server: with `appendonly yes` a crash loses at most a
// second, with `appendfsync always` nothing.
package redis

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/qtype-dev/qtype/distribution/redisclient"
	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

const (
	defaultPrefix = "qtype:"
	defaultConns  = 16
	dialTimeout   = 5 * time.Second
)

// Store is a store.Store on one server or one cluster. It is safe for concurrent use.
type Store struct {
	server  *storage.Server
	warn    func(string)
	connect func() redisclient.Client

	mu      sync.Mutex         // guards what follows
	client  redisclient.Client // what connect has returned; nil before the first use
	checked bool               // the server's settings were checked
	closed  bool
}

// Option changes how a store is opened.
type Option func(*Store)

// Prefix sets the prefix of all keys (default qtype:), so that several stores can
// share a server. It must not contain { or }.
func Prefix(prefix string) Option { return func(s *Store) { s.server.Prefix = prefix } }

// Timeout bounds one call of the server (default 10 seconds), including
// connecting and the wait for a free connection.
func Timeout(d time.Duration) Option { return func(s *Store) { s.server.Timeout = d } }

// Warn calls warn, once for each problem, with a line about settings of the
// server that may lose conversations.
func Warn(warn func(string)) Option { return func(s *Store) { s.warn = warn } }

// Quiet stops the driver from logging to standard error. It affects all uses of
// the driver in the program, so the program decides, not a store.
func Quiet() { logging.Disable() }

// Open returns a store for redis://user:password@host:6379/0, or rediss:// for
// TLS. It connects when first used.
//
// The URL may have go-redis's parameters (pool_size, default 16; read_timeout,
// …), key_prefix and timeout for what Prefix and Timeout set, and for a cluster
// cluster=true or one addr=host:port for each further node.
func Open(address string, opts ...Option) (*Store, error) {
	server, err := storage.ParseServer(address, "key_prefix", defaultPrefix, "redis", "rediss")
	if err != nil {
		return nil, err
	}
	s := &Store{server: server}
	clustered, err := isCluster(server)
	if err != nil {
		return nil, err
	}
	for _, o := range opts {
		o(s)
	}
	if strings.ContainsAny(server.Prefix, "{}") {
		return nil, server.Location.Unavailable("invalid key_prefix: it must not contain { or }")
	}
	if err := server.Check(); err != nil {
		return nil, err
	}
	if err := s.parse(clustered); err != nil {
		return nil, server.Location.Unavailable("invalid URL: " + textfmt.OneLine(err.Error()))
	}
	return s, nil
}

// isCluster reports whether the URL names a cluster. It removes the parameter
// cluster, which the driver does not know.
func isCluster(server *storage.Server) (bool, error) {
	if !server.Query.Has("cluster") {
		return server.Query.Has("addr"), nil
	}
	on, err := strconv.ParseBool(server.Query.Get("cluster"))
	if err != nil {
		return false, server.Location.Unavailable("its parameter cluster must be true or false")
	}
	server.Query.Del("cluster")
	return on || server.Query.Has("addr"), nil
}

// parse returns the driver's settings: one retry, as all our commands are idempotent.
func (s *Store) parse(clustered bool) error {
	u := s.server.DriverURL()
	if clustered {
		if db := strings.Trim(u.Path, "/"); db != "" && db != "0" {
			return errors.New("a cluster has only database 0")
		}
		u.Path = ""
	}
	timeout := s.server.Timeout
	server, err := redisclient.Parse(redisclient.Config{Address: u, Cluster: clustered, MaxRetries: 1,
		Timeout: timeout, DialTimeout: min(dialTimeout, timeout), PoolSize: defaultConns})
	if err == nil {
		s.connect = server.Connect
	}
	return err
}

// Location returns the server, without credentials.
func (s *Store) Location() string { return string(s.server.Location) }

// Close closes all connections. The store must not be used afterwards.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.client == nil {
		return nil
	}
	err := s.client.Close()
	s.client = nil
	return s.server.Location.Explain(context.Background(), err, s.diagnose)
}

// open returns the client, and whether the caller must check the server's settings.
func open(s *Store) (client redisclient.Client, check bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, s.server.Location.Closed()
	}
	if s.client == nil {
		s.client = s.connect()
	}
	check = s.warn != nil && !s.checked
	s.checked = true
	return s.client, check, nil
}

// use calls do within the store's timeout, and again after short trouble: do must be
// idempotent. It returns when ctx ends, even if the driver does not: that observes
// deadlines, but not cancellation.
func use[T any](ctx context.Context, s *Store, do func(context.Context, redisclient.Client) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	client, check, err := open(s)
	if err != nil {
		return zero, err
	}
	results := make(chan result, 1)
	go func() {
		var value T
		err := s.server.Retry(ctx, storage.Failures{Diagnose: s.diagnose, Trouble: trouble}, func(ctx context.Context) (err error) {
			if check {
				checkSettings(ctx, s, client)
				check = false
			}
			value, err = do(ctx, client)
			return err
		})
		if err != nil {
			value = zero
		}
		results <- result{value, err}
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
		return zero, ctx.Err()
	}
}

// checkSettings warns about settings that may lose conversations, unless the
// server refuses to show them.
func checkSettings(ctx context.Context, s *Store, client redisclient.Client) {
	text, err := client.Info(ctx, "persistence", "memory").Result()
	if err != nil {
		return
	}
	settings := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		settings[name] = value
	}
	if settings["aof_enabled"] == "0" {
		s.warn("memory store " + s.Location() + " has no append-only file: a crash loses all messages since the last snapshot; set appendonly yes")
	}
	if policy := settings["maxmemory_policy"]; strings.HasPrefix(policy, "allkeys") && settings["maxmemory"] != "0" {
		s.warn("memory store " + s.Location() + " may evict conversations when its memory is full (maxmemory-policy " + policy + "); set noeviction")
	}
}
