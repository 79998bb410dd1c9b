package appflags

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
)

// Access are the flags for what a document may reach. docs/security.md describes them.
type Access struct {
	trust   bool
	sandbox bool
	grants  qtype.Grants
}

// AddTo adds the flags.
func (a *Access) AddTo(f *pflag.FlagSet) {
	f.BoolVar(&a.trust, "trust", false, "trust a document from an address, until it changes")
	f.BoolVar(&a.sandbox, "sandbox", false, "restrict a local document as one from an address")
	f.StringArrayVar(&a.grants.Env, "env", nil, "let a restricted document have the environment variable `NAME`")
	f.StringArrayVar(&a.grants.Read, "allow-read", nil, "let a restricted document read the file or folder `PATH`")
	f.StringArrayVar(&a.grants.Programs, "allow-program", nil, "let a restricted document start the program `NAME`")
	f.StringArrayVar(&a.grants.Hosts, "allow-host", nil, "let a restricted document call the database or private server `HOST`")
	f.StringVar(&a.grants.OutDir, "out-dir", "", "the `FOLDER` for files that the document writes")
}

// Given reports whether one of the flags is set.
func (a *Access) Given() bool {
	g := a.grants
	return a.trust || a.sandbox || len(g.Env)+len(g.Read)+len(g.Programs)+len(g.Hosts) > 0 || g.OutDir != ""
}

// Options returns the options for the flags and others.
func (a *Access) Options(others ...qtype.Option) []qtype.Option {
	all := append(slices.Clone(others), qtype.WithGrants(a.grants))
	if a.trust {
		all = append(all, qtype.WithTrust())
	}
	if a.sandbox {
		all = append(all, qtype.WithSandbox())
	}
	return all
}

// Reload returns the options for reading a document again: only what the user has seen is
// trusted.
func (a *Access) Reload(others ...qtype.Option) []qtype.Option {
	again := *a
	again.trust = false
	return again.Options(others...)
}
