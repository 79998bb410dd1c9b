package main

import (
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
)

// storeFlag is the flag --store.
type storeFlag struct{ address string }

func (s *storeFlag) addTo(f *pflag.FlagSet) {
	f.StringVar(&s.address, "store", "", "`URL` of the store of memories for which the document names none: sqlite:PATH, postgres://… or redis://…")
}

// options returns the options of an application for the flag.
func (s *storeFlag) options(ephemeral bool) ([]qtype.Option, error) {
	switch {
	case s.address == "":
		return nil, nil
	case ephemeral:
		return nil, usagef("--store and --ephemeral exclude each other")
	}
	return []qtype.Option{qtype.WithDefaultStore(s.address)}, nil
}
