package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"sync"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// New makes an App of a document that was validated without errors. Memories are made
// here; models and tools with the first run of a flow that uses them, so that only that
// run needs credentials.
func New(app *spec.Application, opts Options) (*App, error) {
	if opts.Default == nil {
		opts.Default = memory.NewInProcess()
	}
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	if opts.DocumentEnv == nil {
		opts.DocumentEnv = opts.Getenv
	}
	if opts.Mocks.Fixtures != "" {
		opts.Policy = opts.Policy.WithFixtures(opts.Mocks.Fixtures)
	}
	if opts.Policy != nil && opts.HTTP == nil {
		opts.HTTP = &http.Client{Transport: &policyTransport{policy: opts.Policy, next: httpx.Transport(connections(app))}}
	}
	opts.Redactor = knownSecrets(app, opts)
	a := &App{spec: app, opts: opts, memories: map[string]*memory.Memory{}, searchers: map[string]*search.Searcher{}, memoryStore: map[string]memory.Store{},
		models: newModels(), tools: map[string]func() (tool.Tool, error){}}
	if opts.Audit != nil {
		a.audit = &tool.Audit{Application: app.ID, Write: opts.Audit, Principal: memory.Actor, Redactor: opts.Redactor}
	}
	a.models.traffic.Shared = a.sharedQuota
	a.toolFactory = a.newToolFactory()
	for _, doc := range app.Documents() {
		if err := a.registerEntities(doc); err != nil {
			return nil, err
		}
	}
	a.state = a.newState()
	return a, nil
}

// registerEntities makes the shared objects of one document.
func (a *App) registerEntities(doc *spec.Document) error {
	for _, m := range doc.Models {
		a.registerModel(m)
	}
	for _, t := range doc.Tools {
		a.tools[t.EntityID()] = sync.OnceValues(func() (tool.Tool, error) { return a.newTool(t) })
	}
	if doc.Application == nil {
		return nil
	}
	for _, m := range doc.Application.Memories {
		store, err := a.storeOf(doc.Application, m)
		if err != nil {
			return err
		}
		shared, err := memory.New(a.memoryConfig(doc.Application, m), store)
		if err != nil {
			return fmt.Errorf("memory %s: %w", m.ID, err)
		}
		a.memories[m.ID], a.memoryStore[m.ID], a.searchers[m.ID] = shared, store, search.New(shared)
	}
	return nil
}

// Close closes what the App has opened, and the stores of its Options.
func (a *App) Close(ctx context.Context) error {
	a.turnWork.close(ctx)
	a.models.traffic.Release(ctx)
	a.toolFactory.Close()
	a.rankers.close(a.serviceHTTP() == nil)
	return a.closeStores()
}

// closeStores closes the stores of the App and of its Options.
func (a *App) closeStores() error {
	errs := []error{a.stores.Close(), a.databases.close(), a.closeIndexes(), a.closeCaches()}
	for _, s := range []memory.Store{a.opts.Store, a.opts.Default} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// Redactor returns what replaces the secrets of the application: secrets of the document,
// of the variables with credentials of providers, and, as far as they were read, of the
// secret manager.
func (a *App) Redactor() *redact.Redactor { return a.opts.Redactor }

// knownSecrets returns the Redactor of an application. The loader has added the secrets of a
// document that it has read; those of another one are added here.
func knownSecrets(app *spec.Application, opts Options) *redact.Redactor {
	r := opts.Redactor
	if r == nil {
		r = redact.New()
		eachSecret(reflect.ValueOf(app), "", map[uintptr]bool{}, func(s spec.Secret, kind string) {
			switch kind {
			case "":
				r.Add(s.Reveal())
			case "url":
				r.AddAddress(s.Reveal())
			}
		})
	}
	names := []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}
	for _, p := range opts.Parts.Language.Providers() {
		names = append(names, p.KeyEnv...)
	}
	for _, name := range names {
		r.Add(opts.DocumentEnv(name))
	}
	return r
}

// eachSecret calls found for each secret in a value of package spec. kind is the tag `secret`
// of the field. seen has the pointers
// that were followed: entities refer to each other.
func eachSecret(v reflect.Value, kind string, seen map[uintptr]bool, found func(s spec.Secret, kind string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return
		}
		seen[v.Pointer()] = true
		eachSecret(v.Elem(), kind, seen, found)
	case reflect.Interface:
		eachSecret(v.Elem(), kind, seen, found)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachSecret(v.Index(i), kind, seen, found)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if s, ok := it.Value().Interface().(spec.Secret); ok && kind == "named" && s.Literal() && !redact.NamesSecret(it.Key().String()) {
				continue // such as {accept: application/json}
			}
			eachSecret(it.Value(), kind, seen, found)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[spec.Secret]() {
			found(v.Interface().(spec.Secret), kind)
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				eachSecret(v.Field(i), f.Tag.Get("secret"), seen, found)
			}
		}
	}
}
