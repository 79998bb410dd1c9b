// Package state has the commands of qtype for what applications have stored: conversations, indexes, cached
// results, runs and tokens of servers. Only qtype runs retry runs flows.
package state

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cacheview"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/runtime"
)

// loadApplication reads an application for a command that does not run it. what
// completes an error: "only an application …".
func loadApplication(ctx context.Context, path, what string, opts ...qtype.Option) (*qtype.Program, error) {
	p, list := qtype.Check(ctx, path, opts...)
	if err := list.Err(); err != nil {
		return nil, err
	}
	if p.Document.Application == nil {
		return nil, fmt.Errorf("%s is not an application: only an application %s", path, what)
	}
	return p, nil
}

// withStored calls run with the application of a document, for a command about what it has stored.
// Unset environment variables matter only to flows: they are no errors. The user of the system
// is the actor of the changes.
func withStored(ctx context.Context, s *cli.Streams, path string, store *appflags.Store, run func(context.Context, *runtime.App) error) error {
	p, list := qtype.Check(ctx, path)
	if err := list.Err(); err != nil {
		return err
	}
	return withProgram(ctx, s, p, store, run)
}

// withProgram is withStored for a document that was read.
func withProgram(ctx context.Context, s *cli.Streams, p *qtype.Program, store *appflags.Store, run func(context.Context, *runtime.App) error) (err error) {
	opts, err := store.Options(false)
	if err != nil {
		return err
	}
	app, err := qtype.New(p, append(opts, qtype.WithWarnings(s.Logger("warning: ")))...)
	if err != nil {
		return err
	}
	defer appflags.CloseApp(ctx, app, &err)
	return run(appflags.WithActor(ctx), app)
}

// withCaches calls run with the caches that an application declares; with none to leave them alone.
func withCaches(s *cli.Streams, app *runtime.App, leave bool, run func(cacheview.Caches) error) (err error) {
	if leave {
		return run(nil)
	}
	caches, err := openCaches(s, app, "")
	if none := (*cacheview.NoCacheError)(nil); err != nil && !errors.As(err, &none) {
		return err
	}
	defer func() { err = errors.Join(err, caches.Close()) }()
	return run(caches)
}

// openCaches opens the caches that an application declares, of the step of an id or of all. A refusal names
// no flag: these commands have none that lets a document write.
func openCaches(s *cli.Streams, app *runtime.App, step string) (cacheview.Caches, error) {
	caches, err := cacheview.OpenDeclared(app.Spec(), step, app.Policy(), app.SharedCache(), s.Logger("warning: "))
	if refused, ok := errors.AsType[*qtype.RefusedError](err); ok {
		return nil, &qtype.RefusedError{Action: refused.Action, Reason: refused.Reason}
	}
	return caches, err
}

// withFolderOf returns the folder of the document of an application, and further ones.
func withFolderOf(app *runtime.App, further []string) []string {
	if folder := app.Folder(); folder != "" {
		return append([]string{folder}, further...)
	}
	return further
}

// confirmation is the rule of commands that delete what cannot be made again: they prompt on
// a terminal, and need --yes without one.
type confirmation struct {
	*cli.Streams
	yes bool
}

func (c *confirmation) addTo(f *pflag.FlagSet) {
	f.BoolVarP(&c.yes, "yes", "y", false, "do not ask for confirmation")
}

// ask returns nil if what, which the command removes, may be removed.
func (c *confirmation) ask(command, what string) error {
	switch {
	case c.yes:
		return nil
	case !c.InTerminal:
		return terminal.Usagef("%s removes %s: pass --yes to confirm", command, what)
	}
	fmt.Fprintf(c.Err, "remove %s? [y/N] ", what)
	var answer string
	if _, err := fmt.Fscanln(c.In, &answer); err != nil || !strings.HasPrefix(strings.ToLower(answer), "y") {
		return errors.New("nothing was removed")
	}
	return nil
}
