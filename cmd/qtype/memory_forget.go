package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cacheview"
	"github.com/qtype-dev/qtype/internal/erasure"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
)

// memoryForget is one call of qtype memory forget.
type memoryForget struct {
	memoryCommand
	user       string
	journals   []string // further folders
	keepCaches bool
}

func newForget(s *streams) *cobra.Command {
	r := &memoryForget{memoryCommand: memoryCommand{streams: s}}
	c := r.withFormat(r.command("forget", "Delete everything that is stored of a user", r.forget))
	c.Long = `Deletes everything that is stored of a user: sessions, variables, facts, summaries
and vectors of all memories, sessions and runs of the server, and journals of interrupted
runs that have rows of the user, in the folder of the document and in those of --journals.
Caches of steps do not record whose results they have: they are cleared. Prints a receipt
that lists what was deleted and where was searched. Outputs of runs are not deleted.`
	c.Example = `  qtype memory forget app.qtype.yaml --user ada
  qtype memory forget app.qtype.yaml --user ada --format json > receipt.json`
	c.Flags().StringVar(&r.user, "user", "", "`NAME` of the user (required)")
	c.Flags().StringArrayVar(&r.journals, "journals", nil, "`FOLDER` that is searched for journals too; may be repeated")
	c.Flags().BoolVar(&r.keepCaches, "keep-caches", false, "do not clear the caches of steps")
	c.Flags().Lookup("memory").Hidden = true
	return c
}

func (r *memoryForget) forget(ctx context.Context, app *runtime.App) (err error) {
	switch {
	case r.user == "":
		return usagef("which user? pass --user")
	case r.memory != "":
		return usagef("forget deletes from all memories: leave out --memory")
	}
	cfg := erasure.Config{App: app, User: r.user, Journals: r.journals}
	if folder := app.Folder(); folder != "" {
		cfg.Journals = append([]string{folder}, cfg.Journals...)
	}
	if !r.keepCaches {
		cfg.Caches, err = cacheview.OpenDeclared(app.Spec(), "", r.Logger("warning: "))
		if none := (*cacheview.NoCacheError)(nil); err != nil && !errors.As(err, &none) {
			return err
		}
		defer func() { err = errors.Join(err, cfg.Caches.Close()) }()
	}
	receipt, err := erasure.User(ctx, cfg)
	if receipt == nil {
		return err
	}
	return errors.Join(err, r.print(receipt))
}

// print writes a receipt.
func (r *memoryForget) print(receipt *erasure.Receipt) error {
	if r.format.value == "json" {
		enc := json.NewEncoder(r.Out)
		enc.SetEscapeHTML(false)
		return enc.Encode(receipt)
	}
	for _, one := range receipt.Deleted {
		name := terminal.Clean(one.ID)
		switch {
		case one.Memory != "" && one.Messages > 0:
			fmt.Fprintf(r.Out, "deleted  memory %s: %s (%s)\n", one.Memory, name, textfmt.Count(one.Messages, "message"))
		case one.Memory != "":
			fmt.Fprintf(r.Out, "deleted  memory %s: %s\n", one.Memory, name)
		default:
			fmt.Fprintf(r.Out, "deleted  %s %s\n", one.Kind, name)
		}
	}
	for _, one := range receipt.Caches {
		fmt.Fprintf(r.Out, "cleared  cache of step %s: %s\n", terminal.Clean(one.Step), textfmt.Count(one.Results, "result"))
	}
	for _, path := range receipt.Journals {
		fmt.Fprintf(r.Out, "deleted  journal %s\n", terminal.Clean(filepath.ToSlash(path)))
	}
	for _, id := range receipt.Kept {
		fmt.Fprintf(r.Out, "kept     memory %s has scope app: all users share its conversation\n", id)
	}
	_, err := fmt.Fprintf(r.Out, "user %s: %s deleted, %s searched\n", terminal.Clean(receipt.User),
		textfmt.Count(len(receipt.Deleted)+len(receipt.Journals), "item"), textfmt.Count(len(receipt.Searched), "place"))
	return err
}
