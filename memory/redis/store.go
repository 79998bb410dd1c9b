// Package redis keeps memories in Redis 7 or Valkey, for any number of processes
// at once. A change is one script on the server: the head moves only from the
// version that the writer read, and what was said goes in with it or not at all.
// It is as durable as the server is set up to be: with `appendonly yes` a crash
// loses at most a second, with `appendfsync always` beside it nothing.
package redis

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/qtype-dev/qtype/internal/paging"
	"github.com/qtype-dev/qtype/memory"
)

const (
	defaultPrefix  = "qtype:"
	defaultTimeout = 10 * time.Second
	defaultConns   = 16
	dialTimeout    = 5 * time.Second
)

// Store is a memory.Store on one server or one cluster. It is safe for concurrent use.
type Store struct {
	place   string // without credentials
	prefix  string // of the keys
	timeout time.Duration
	warn    func(string)
	single  *driver.Options        // one server; nil for a cluster
	cluster *driver.ClusterOptions // a cluster; nil for one server

	mu     sync.Mutex // guards what follows
	client driver.UniversalClient
	asked  bool // the server was asked how it is set up
	closed bool
}

// Option changes how a store is opened.
type Option func(*Store)

// Prefix begins all keys, qtype: where it is not given: several stores live on
// one server beside each other. It must hold neither { nor }.
func Prefix(prefix string) Option { return func(s *Store) { s.prefix = prefix } }

// Timeout is how long one use of the server may take, connecting and waiting
// for a free connection included; 10 seconds where it is not given.
func Timeout(d time.Duration) Option { return func(s *Store) { s.timeout = d } }

// Warn is told, once and in one line each, how the server is set up such that
// conversations may be lost.
func Warn(tell func(string)) Option { return func(s *Store) { s.warn = tell } }

// Quiet stops the driver from writing to standard error beside the errors that
// its callers get. That concerns all of the program's uses of the driver, so a
// program decides, not a store.
func Quiet() { logging.Disable() }

// Open names the server: redis://user:password@host:6379/0, or rediss:// for
// TLS. Nothing is connected to before the first use.
//
// The URL may carry go-redis's parameters (pool_size, 16 where it is not given;
// read_timeout, …), key_prefix and timeout for what Prefix and Timeout set, and
// for a cluster cluster=true or one addr=host:port for each further node.
func Open(address string, opts ...Option) (*Store, error) {
	s := &Store{place: "redis", prefix: defaultPrefix, timeout: defaultTimeout}
	u, err := url.Parse(address)
	if err != nil { // the error's text holds the password
		return nil, s.wrong("its URL cannot be read: is everything in the password percent-encoded?")
	}
	if u.Scheme != "redis" && u.Scheme != "rediss" {
		return nil, s.wrong("its URL begins with redis:// or rediss://")
	}
	s.place = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, s.wrong("the parameters of its URL cannot be read: is everything in them percent-encoded?")
	}
	clustered, err := s.read(parameters)
	if err != nil {
		return nil, err
	}
	u.RawQuery = parameters.Encode()
	for _, o := range opts {
		o(s)
	}
	switch {
	case strings.ContainsAny(s.prefix, "{}"):
		return nil, s.wrong("the prefix of its keys must hold neither { nor }")
	case s.timeout <= 0:
		return nil, s.wrong("its timeout must be more than 0, such as 10s")
	}
	if clustered {
		err = s.forCluster(u)
	} else {
		err = s.forServer(u)
	}
	if err != nil {
		return nil, s.wrong("its URL cannot be used: " + strings.TrimPrefix(oneLine(err), "redis: "))
	}
	return s, nil
}

// read takes our own parameters out of the URL's.
func (s *Store) read(parameters url.Values) (clustered bool, err error) {
	if parameters.Has("key_prefix") {
		s.prefix = parameters.Get("key_prefix")
		parameters.Del("key_prefix")
	}
	if text := parameters.Get("timeout"); parameters.Has("timeout") {
		if s.timeout, err = time.ParseDuration(text); err != nil {
			return false, s.wrong("its timeout must be a duration such as 10s")
		}
		parameters.Del("timeout")
	}
	clustered = parameters.Has("addr")
	if text := parameters.Get("cluster"); parameters.Has("cluster") {
		on, err := strconv.ParseBool(text)
		if err != nil {
			return false, s.wrong("its parameter cluster is true or false")
		}
		clustered = clustered || on
		parameters.Del("cluster")
	}
	return clustered, nil
}

// forServer and forCluster set what we want otherwise than the driver does: one
// retry, for all that we do may be done twice; waits that end with the caller's
// context; and no chatter beside our own commands.
func (s *Store) forServer(u *url.URL) (err error) {
	if s.single, err = driver.ParseURL(u.String()); err != nil {
		return err
	}
	o := s.single
	o.ContextTimeoutEnabled, o.DisableIdentity, o.MaxRetries, o.DialerRetries = true, true, 1, 1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ReadTimeout, o.WriteTimeout = s.timeout, s.timeout
	if o.DialTimeout == 0 {
		o.DialTimeout = min(dialTimeout, s.timeout)
	}
	if o.PoolSize == 0 {
		o.PoolSize = defaultConns
	}
	o.PoolTimeout = s.timeout
	return nil
}

func (s *Store) forCluster(u *url.URL) (err error) {
	if strings.Trim(u.Path, "/") != "" && strings.Trim(u.Path, "/") != "0" {
		return errors.New("a cluster has the database 0 only")
	}
	u.Path = ""
	if s.cluster, err = driver.ParseClusterURL(u.String()); err != nil {
		return err
	}
	o := s.cluster
	o.ContextTimeoutEnabled, o.DisableIdentity, o.MaxRetries, o.DialerRetries = true, true, 1, 1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ReadTimeout, o.WriteTimeout = s.timeout, s.timeout
	if o.DialTimeout == 0 {
		o.DialTimeout = min(dialTimeout, s.timeout)
	}
	if o.PoolSize == 0 {
		o.PoolSize = defaultConns
	}
	o.PoolTimeout = s.timeout
	return nil
}

func (s *Store) wrong(message string) error {
	return &memory.StoreError{Place: s.place, Problem: memory.Unavailable, Message: message}
}

// Location is the server, without credentials.
func (s *Store) Location() string { return s.place }

// Close closes all connections. Nothing is called after it.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.client == nil {
		return nil
	}
	err := s.client.Close()
	s.client = nil
	if err != nil {
		return s.explain(context.Background(), err)
	}
	return nil
}

// open is the client, and whether the server is to be asked how it is set up.
func (s *Store) open() (client driver.UniversalClient, ask bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, s.wrong("it was closed")
	}
	if s.client == nil && s.cluster != nil {
		s.client = driver.NewClusterClient(s.cluster)
	} else if s.client == nil {
		s.client = driver.NewClient(s.single)
	}
	ask = s.warn != nil && !s.asked
	s.asked = true
	return s.client, ask, nil
}

// use does something with the server, within the store's timeout.
func use[T any](ctx context.Context, s *Store, do func(context.Context, driver.UniversalClient) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	client, ask, err := s.open()
	if err != nil {
		return none, err
	}
	bounded, cancel := paging.Within(ctx, s.timeout)
	answers := make(chan answer, 1)
	go func() { // the driver heeds a context's deadline, but not that it is cancelled
		defer cancel()
		if ask {
			s.askSettings(bounded, client)
		}
		value, err := do(bounded, client)
		answers <- answer{value, s.explain(bounded, err)}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// askSettings warns of settings that lose conversations. A server that does not
// tell is used all the same.
func (s *Store) askSettings(ctx context.Context, client driver.UniversalClient) {
	text, err := client.Info(ctx, "persistence", "memory").Result()
	if err != nil {
		return
	}
	told := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		told[name] = value
	}
	if told["aof_enabled"] == "0" {
		s.warn("memory store " + s.place + " keeps no append-only file: a crash loses what was said since its last snapshot; set appendonly yes")
	}
	if policy := told["maxmemory_policy"]; strings.HasPrefix(policy, "allkeys") && told["maxmemory"] != "0" {
		s.warn("memory store " + s.place + " may drop conversations when its memory is full (maxmemory-policy " + policy + "); set noeviction")
	}
}
