package appflags

import (
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// Store is the flag --store.
type Store struct{ address string }

// AddTo adds the flag.
func (s *Store) AddTo(f *pflag.FlagSet) {
	f.StringVar(&s.address, "store", "", "`URL` of the store of memories for which the document names none: sqlite:PATH, postgres://… or redis://…")
}

// Given reports whether the flag is set.
func (s *Store) Given() bool { return s.address != "" }

// Options returns the options of an application for the flag.
func (s *Store) Options(ephemeral bool) ([]qtype.Option, error) {
	switch {
	case s.address == "":
		return nil, nil
	case ephemeral:
		return nil, terminal.Usagef("--store and --ephemeral exclude each other")
	}
	return []qtype.Option{qtype.WithDefaultStore(s.address)}, nil
}
