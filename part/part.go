// Package part adds parts of other modules to a program: what documents can name, with what implements it.
//
// A part is declared once. Checks, the JSON schema, editors, the reference and runs read the declaration. A main function
// passes the parts to command.Main; a program that opens documents itself reads them with the context of With.
package part

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// Part is something that documents can name. The zero value is not usable.
type Part struct{ add func(*runtime.Parts) error }

// Store returns a type of stores for memories, and what opens a store at an address, which begins with the name and a colon. open
// accesses files and servers when they are first used.
func Store(name, doc string, open func(address string) (store.Store, error)) Part {
	return Part{func(p *runtime.Parts) error {
		if open == nil {
			return fmt.Errorf("store type %q: there is no function that opens a store", name)
		}
		p.Stores[name] = func(address string, _ func(string)) (made store.Store, err error) {
			err = parts.Guard("its type "+name, func() (err error) {
				made, err = open(address)
				return err
			})
			if err == nil && made == nil {
				err = fmt.Errorf("its type %s returned no store", name)
			}
			return made, err
		}
		return p.Language.AddStore(spec.StoreType{Name: name, Doc: doc})
	}}
}

// Provider returns a provider of models, with what makes its chat models and its embedding models; one of them may be nil. The row
// has at least Name, Doc, BaseURL, and BaseURLDoc if a document may set base_url. Retries, rate limits, prices, truncation and structured
// output are added to what they return.
func Provider(row spec.Provider, chat func(model.Connection) (model.Chat, error), embedder func(model.Connection) (model.Embedder, error)) Part {
	return Part{func(p *runtime.Parts) error {
		row.NoChat, row.Embeddings = chat == nil, embedder != nil
		p.Models[row.Name] = provider.Own(chat, embedder)
		if err := p.Language.AddProvider(row); err != nil || chat != nil || embedder != nil {
			return err
		}
		return fmt.Errorf("provider %q: there is no function that makes models", row.Name)
	}}
}

// Tool returns a type of tools: documents name it by the name of the struct T. The tag `doc` of the embedded ToolBase
// describes the type, and that of each field its key; the other tags are those of package spec.
func Tool[T any, P interface {
	*T
	tool.Maker
}]() Part {
	return Part{func(p *runtime.Parts) error {
		return spec.AddCase(p.Language, func() spec.Tool { return P(new(T)) })
	}}
}

// Step returns a type of steps: documents name it by the name of the struct T. The tag `doc` of the embedded StepBase describes the
// type, and that of each field its key. The tags `in` and `out` of the StepBase declare its variables, and the tag `calls` of a
// reference to a model how often a row calls it at most; the other tags are those of package spec.
func Step[T any, P interface {
	*T
	steps.Maker
}]() Part {
	return Part{func(p *runtime.Parts) error {
		return spec.AddCase(p.Language, func() spec.Step { return P(new(T)) })
	}}
}

// Add adds parts to a table, which it changes. A name that is used already is an error.
func Add(to *runtime.Parts, parts ...Part) error {
	to.Language = to.Language.Clone()
	for i, p := range parts {
		if p.add == nil {
			return fmt.Errorf("part %d is the zero value", i+1)
		}
		if err := p.add(to); err != nil {
			return err
		}
	}
	return nil
}

// With returns a context in which documents are read and run with parts, in addition to those of the context.
func With(ctx context.Context, parts ...Part) (context.Context, error) {
	table := runtime.PartsOf(ctx).Clone()
	if err := Add(&table, parts...); err != nil {
		return nil, err
	}
	return runtime.WithParts(ctx, table), nil
}
