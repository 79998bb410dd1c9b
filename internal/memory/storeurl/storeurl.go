// Package storeurl opens the stores of memories by URL:
//
//	memory:                          in the process; its data is lost at exit
//	sqlite:path/memory.db            a file; sqlite:///path/memory.db is the same, as in SQLAlchemy,
//	                                 and file:///path/memory.db has the absolute path
//	postgres://user:word@host/db     a PostgreSQL database; postgresql:// is the same
//	redis://user:word@host/0         a Redis or Valkey server; rediss:// uses TLS
package storeurl

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
)

// forms lists the forms of an address, for error messages.
const forms = "memory:, sqlite:PATH, postgres://…, postgresql://…, redis://… and rediss://…"

// Openers are the stores that a program can open, by the types of stores that documents declare.
type Openers map[string]Opener

// Opener opens the store at an address, which may have credentials. It accesses files and servers
// when they are first used. warn, which may be nil, is that of Warn.
type Opener func(address string, warn func(string)) (store.Store, error)

// Core returns the table of the stores of the core. The caller may add others.
func Core() Openers {
	return Openers{"memory": openMemory, "sqlite": openSQLite}
}

// Option changes how stores are opened.
type Option func(*options)

type options struct {
	warn  func(string)
	keys  *encrypted.Keys
	among Openers
}

func newOptions(opts []Option) options {
	o := options{among: Core()}
	for _, set := range opts {
		set(&o)
	}
	return o
}

// Warn calls warn, once for each problem, with a line about settings of a server
// that may lose conversations. Calls may be concurrent, at any time.
func Warn(warn func(string)) Option { return func(o *options) { o.warn = warn } }

// Encrypt encrypts everything that is written to the store.
func Encrypt(keys encrypted.Keys) Option { return func(o *options) { o.keys = &keys } }

// Among opens only stores of a table. A nil table is that of the core.
func Among(table Openers) Option {
	return func(o *options) {
		if table != nil {
			o.among = table
		}
	}
}

// Open returns the store at an address. It accesses files and servers when they
// are first used. Errors hold no credentials.
func Open(address string, opts ...Option) (store.Store, error) {
	o := newOptions(opts)
	store, err := open(address, o)
	if err != nil || o.keys == nil {
		return store, err
	}
	return encrypted.New(store, Location(store), *o.keys), nil
}

func open(address string, o options) (store.Store, error) {
	scheme, _, found := strings.Cut(address, ":")
	name := scheme // of a type that the program adds
	known, declared := new(spec.Language).StoreAt(scheme)
	if declared {
		name = known.Name
	}
	switch opener := o.among[name]; {
	case found && opener != nil:
		return opener(address, o.warn)
	case found && declared:
		return nil, storage.Location(name).Unavailable((&parts.MissingError{Kind: parts.Store, Name: name}).Error())
	}
	if !found || strings.ContainsFunc(scheme, notLetter) { // it may hold a password
		return nil, storage.Location("store").Unavailable("invalid address; use one of " + forms)
	}
	return nil, storage.Location(scheme).Unavailable("unknown kind of store; use one of " + forms)
}

func notLetter(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }

// AsStore returns the result of a function that opens a store: a nil interface, not a nil pointer, for an error.
func AsStore[S store.Store](s S, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openMemory(address string, _ func(string)) (store.Store, error) {
	if address != "memory:" {
		return nil, storage.Location("memory").Unavailable("the address memory: must end after the colon")
	}
	return inprocess.New(), nil
}

// openSQLite reads addresses as SQLAlchemy does: the path begins after the third
// slash, and a fourth one makes it absolute.
func openSQLite(address string, _ func(string)) (store.Store, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	path, ok := strings.CutPrefix(rest, "///")
	if !ok || scheme == "file" {
		path = strings.TrimPrefix(rest, "//")
	}
	switch {
	case scheme == "file":
	case path == "":
		return nil, storage.Location("sqlite").Unavailable("missing path; use sqlite:PATH or sqlite:///PATH")
	case path == ":memory:":
		return nil, storage.Location("sqlite").Unavailable("for a store in the process use memory:")
	}
	return AsStore(sqlite.Open(path))
}

// Address returns the address of a store that a document declares by its type, which the language or among has, and a URL.
func Address(among Openers, name, url string) (string, error) {
	location := storage.Location(name)
	kind, declared := new(spec.Language).StoreType(name)
	if !declared { // a type that the program adds
		if among[name] == nil {
			return "", location.Unavailable("unknown type of store; use memory, sqlite, postgres or redis")
		}
		kind.Schemes = []string{name}
	}
	scheme, _, found := strings.Cut(url, ":")
	matches := found && slices.Contains(kind.Schemes, scheme)
	switch {
	case name == "memory" && (url == "" || url == "memory:"):
		return "memory:", nil
	case name == "memory":
		return "", location.Unavailable("a store of type memory has no URL")
	case matches:
		return url, nil
	case name == "sqlite" && !strings.Contains(url, "://"): // a URL may hold a password
		return "sqlite:" + url, nil
	case name == "sqlite":
		return "", location.Unavailable("its URL must be the path of a file, or begin with sqlite: or file:")
	case !declared:
		return "", location.Unavailable("its URL must begin with " + name + ":")
	}
	return "", location.Unavailable("its URL must begin with " + strings.Join(kind.Schemes, ":// or ") + "://")
}

// Location names the place where a store keeps its data, without credentials.
func Location(s store.Store) string {
	if s, ok := s.(interface{ Location() string }); ok {
		return s.Location()
	}
	return "this process"
}
