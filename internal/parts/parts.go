// Package parts names the implementations of which a program is made, such as its model
// providers and stores. A checker compares them with what a document needs, so this package
// imports none of them: the tables with the values are those of the packages that use them.
package parts

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// Kind is what a part implements.
type Kind string

// The kinds of parts.
const (
	Provider  Kind = "model provider"
	Store     Kind = "memory store"
	Index     Kind = "index store"
	Database  Kind = "SQL database"
	Files     Kind = "file system" // named by the scheme of its addresses
	Engine    Kind = "engine"
	Converter Kind = "converter"
	Format    Kind = "file format"   // of documents
	Records   Kind = "record format" // of files with rows
	Telemetry Kind = "telemetry"
	Identity  Kind = "identity" // named by the type of its auth
	Tool      Kind = "tool"
	Step      Kind = "step" // of another module
)

// Get is the command that gets the program with all parts.
const Get = "go install github.com/qtype-dev/qtype/distribution/cmd/qtype@latest"

// Set is the parts of a program. A nil Set has all parts: it is that of a program which checks
// documents for others to run. It must not be changed after the first call of Check.
type Set struct{ names map[Kind][]string }

// Add adds parts of a kind and returns the set.
func (s *Set) Add(kind Kind, names ...string) *Set {
	if s.names == nil {
		s.names = map[Kind][]string{}
	}
	s.names[kind] = append(s.names[kind], names...)
	return s
}

// Check returns a *MissingError if the program does not have a part.
func (s *Set) Check(kind Kind, name string) error {
	if s == nil || slices.Contains(s.names[kind], name) {
		return nil
	}
	return &MissingError{Kind: kind, Name: name}
}

// Kinds returns the kinds with parts, sorted.
func (s *Set) Kinds() []Kind { return slices.Sorted(maps.Keys(s.names)) }

// Names returns the parts of a kind, sorted.
func (s *Set) Names(kind Kind) []string { return slices.Sorted(slices.Values(s.names[kind])) }

// MissingError reports a part that the program does not have.
type MissingError struct {
	Kind Kind
	Name string
}

// Error names the part and the command that gets it.
func (e *MissingError) Error() string {
	return fmt.Sprintf("this program has no %s %s; the distribution has it: %s", e.Kind, e.Name, Get)
}

// Reason returns the same as Error.
func (e *MissingError) Reason() string { return e.Error() }

type key struct{}

// With returns a context in which documents are checked for a program with these parts.
func With(ctx context.Context, s *Set) context.Context { return context.WithValue(ctx, key{}, s) }

// From returns the parts of the program of a context; nil, which has all, if With was not called.
func From(ctx context.Context) *Set {
	s, _ := ctx.Value(key{}).(*Set)
	return s
}
