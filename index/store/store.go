// Package store opens the indexes that a document declares: it selects the client of the
// store, decodes its arguments and finds the credentials.
package store

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// Options are the environment, the transport and the secrets of indexes.
type Options struct {
	Getenv func(name string) string          // the environment; nil means os.Getenv
	HTTP   *http.Client                      // carries the calls; nil means a client with default timeouts
	Secret func(spec.Secret) (string, error) // resolves secrets; nil accepts only those that are texts
	Policy *trust.Policy                     // what the document may reach; nil allows everything
	Stores Builders                          // the stores that can be opened; nil for those of the core
	Folder string                            // base of relative paths of embedded indexes; empty for the working directory
}

// Request is what a Builder gets: an index of a document, with its arguments and credentials.
type Request struct {
	Options
	Entity     spec.Index
	Arguments  any // a pointer to the struct of the store's arguments
	Dimensions int // length of the vectors; 0 for a full-text index
	Credential Credential
}

// Builders are the stores that a program has, by their names in spec.IndexStores.
type Builders map[string]Builder

// Builder opens an index. It may call the server.
type Builder func(context.Context, Request) (index.Index, error)

// Core returns the table of the stores of the core. The caller may add others.
func Core() Builders { return Builders{"embedded": Typed(openEmbedded)} }

// Typed adapts a builder that knows the struct of its arguments.
func Typed[A any](build func(context.Context, Request, A) (index.Index, error)) Builder {
	return func(ctx context.Context, r Request) (index.Index, error) { return build(ctx, r, r.Arguments.(A)) }
}

// Open opens an index, whose references are linked. The index need not exist yet.
func Open(ctx context.Context, x spec.Index, opts Options) (index.Index, error) {
	opened, err := open(ctx, x, opts)
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", x.EntityID(), err)
	}
	return opened, nil
}

func open(ctx context.Context, x spec.Index, opts Options) (index.Index, error) {
	row, err := spec.StoreOf(x)
	if err != nil {
		return nil, err
	}
	if opts.Stores == nil {
		opts.Stores = Core()
	}
	build, ok := opts.Stores[row.Name]
	if !ok {
		return nil, &parts.MissingError{Kind: parts.Index, Name: row.Name}
	}
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	r := Request{Options: opts, Entity: x}
	if r.Arguments, err = decodeArguments(x); err != nil {
		return nil, err
	}
	if v, isVector := x.(*spec.VectorIndex); isVector {
		if v.EmbeddingModel.To == nil {
			return nil, fmt.Errorf("embedding_model names %q, which is not an embedding model", v.EmbeddingModel.ID)
		}
		r.Dimensions = v.EmbeddingModel.To.Dimensions
		if wrong := v.CheckDimensions(r.Arguments); wrong != nil {
			return nil, fmt.Errorf("args: %w", wrong)
		}
	}
	if r.Credential, err = findCredential(row, x, opts); err != nil {
		return nil, err
	}
	return build(ctx, r)
}

// decodeArguments returns the arguments of a store. The checker has reported all errors
// of a document; those of a Go program are in one line.
func decodeArguments(x spec.Index) (any, error) {
	into := x.Selection().Mappings[0].Into
	problems := spec.DecodeArguments(x.Common().Args, into)
	if len(problems) == 0 {
		return into, nil
	}
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.Error()
	}
	return nil, fmt.Errorf("args: %s", strings.Join(texts, "; "))
}

// NameOr returns the name in the arguments, by default the name of the index.
func (r Request) NameOr(set string) string { return cmp.Or(set, r.Entity.Common().Name) }
