// Package stores opens the stores of memories by their addresses:
//
//	memory:                          in the process, gone with it
//	sqlite:path/memory.db            a file; sqlite:///path/memory.db is the same, as SQLAlchemy writes it,
//	                                 and file:///path/memory.db is the absolute path
//	postgres://user:word@host/db     a PostgreSQL database; postgresql:// is the same
//	redis://user:word@host/0         a Redis or Valkey server; rediss:// over TLS
package storeurl

import (
	"errors"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/encrypted"
	"github.com/qtype-dev/qtype/memory/postgres"
	"github.com/qtype-dev/qtype/memory/redis"
	"github.com/qtype-dev/qtype/memory/sqlite"
)

// known are the forms of an address, for a person.
const known = "memory:, sqlite:PATH, postgres://…, postgresql://…, redis://… and rediss://…"

// Option changes how stores are opened.
type Option func(*options)

type options struct {
	warn func(string)
	keys *encrypted.Keys
}

// Warn is told, in one line each, how a server is set up such that
// conversations may be lost. It may be called at any time, also concurrently.
func Warn(tell func(string)) Option { return func(s *options) { s.warn = tell } }

// Encrypt seals all that goes into the store with the keys.
func Encrypt(keys encrypted.Keys) Option { return func(s *options) { s.keys = &keys } }

// Quiet stops drivers from writing to standard error beside the errors that
// they return; the whole program's uses of them fall silent.
func Quiet() { redis.Quiet() }

// Open opens the store at an address. Files and servers are touched when they
// are first used. No error names the credentials in the address.
func Open(address string, opts ...Option) (memory.Store, error) {
	s := chosen(opts)
	store, err := s.open(address)
	if err != nil || s.keys == nil {
		return store, err
	}
	return encrypted.New(store, Place(store), *s.keys), nil
}

func chosen(opts []Option) options {
	var s options
	for _, o := range opts {
		o(&s)
	}
	return s
}

func (s options) open(address string) (memory.Store, error) {
	scheme, rest, found := strings.Cut(address, ":")
	switch {
	case !found:
		return nil, addressError("store", "its address is none of "+known)
	case scheme == "memory" && rest == "":
		return memory.NewInProcess(), nil
	case scheme == "memory":
		return nil, addressError("memory", "the address memory: has nothing behind the colon")
	case scheme == "sqlite":
		return file(rest)
	case scheme == "file":
		return checked(sqlite.Open(strings.TrimPrefix(rest, "//")))
	case scheme == "postgres", scheme == "postgresql":
		return checked(postgres.Open(address))
	case scheme == "redis", scheme == "rediss":
		return checked(redis.Open(address, redis.Warn(s.warn)))
	case strings.ContainsFunc(scheme, notDriveLetter): // it may be anything, a password too
		return nil, addressError("store", "its address is none of "+known)
	}
	return nil, addressError(scheme, "there is no such kind of store; there are "+known)
}

func notDriveLetter(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }

// checked keeps a nil pointer from becoming a store.
func checked[S memory.Store](s S, err error) (memory.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// file opens the SQLite file behind "sqlite:". As in SQLAlchemy, which the
// language's SQL steps follow, what stands behind the third slash is the path: a
// fourth one makes it absolute.
func file(rest string) (memory.Store, error) {
	path, ok := strings.CutPrefix(rest, "///")
	if !ok {
		path = strings.TrimPrefix(rest, "//")
	}
	switch path {
	case "":
		return nil, addressError("sqlite", "its file is written sqlite:PATH or sqlite:///PATH")
	case ":memory:":
		return nil, addressError("sqlite", "a store in the process is written memory:")
	}
	return checked(sqlite.Open(path))
}

func addressError(place, message string) error {
	return &memory.StoreError{Place: place, Problem: memory.Unavailable, Message: message}
}

// Address is the address of a store that a document declares by its type
// (memory, sqlite, postgres or redis) and a URL.
func Address(kind, url string) (string, error) {
	begins := func(schemes ...string) bool {
		for _, s := range schemes {
			if strings.HasPrefix(url, s+":") {
				return true
			}
		}
		return false
	}
	switch kind {
	case "memory":
		if url != "" && url != "memory:" {
			return "", addressError(kind, "a store of type memory has no URL")
		}
		return "memory:", nil
	case "sqlite":
		switch {
		case begins("sqlite", "file"):
			return url, nil
		case strings.Contains(url, "://"): // else it would be a file's name, password and all
			return "", addressError(kind, "its URL is the path of a file, or begins with sqlite: or file:")
		}
		return "sqlite:" + url, nil
	case "postgres":
		if !begins("postgres", "postgresql") {
			return "", addressError(kind, "its URL begins with postgres:// or postgresql://")
		}
		return url, nil
	case "redis":
		if !begins("redis", "rediss") {
			return "", addressError(kind, "its URL begins with redis:// or rediss://")
		}
		return url, nil
	}
	return "", addressError(kind, "there is no such type of store; there are memory, sqlite, postgres and redis")
}

// Place names where a store keeps things, for a person and without credentials.
func Place(s memory.Store) string {
	switch s := s.(type) {
	case *sqlite.Store:
		return s.Path()
	case interface{ Location() string }:
		return s.Location()
	}
	return "this process"
}

// Set is stores that are shared by address and keys: who opens the same twice
// gets one. The zero value is ready, and it is safe for concurrent use.
type Set struct {
	mu        sync.Mutex
	byAddress map[string]memory.Store
}

// Open is the store at an address.
func (s *Set) Open(address string, opts ...Option) (memory.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := address
	if keys := chosen(opts).keys; keys != nil {
		same += "\x00" + keys.Names()
	}
	if store, ok := s.byAddress[same]; ok {
		return store, nil
	}
	store, err := Open(address, opts...)
	if err != nil {
		return nil, err
	}
	if s.byAddress == nil {
		s.byAddress = map[string]memory.Store{}
	}
	s.byAddress[same] = store
	return store, nil
}

// Close closes all of them.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, store := range s.byAddress {
		errs = append(errs, store.Close())
	}
	s.byAddress = nil
	return errors.Join(errs...)
}
