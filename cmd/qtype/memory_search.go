package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/runtime"
)

// memorySearch is one call of qtype memory search.
type memorySearch struct {
	memoryCommand
	user  string
	limit int
}

func newMemorySearch(s *streams) *cobra.Command {
	r := &memorySearch{memoryCommand: memoryCommand{streams: s}}
	c := &cobra.Command{
		Use: "search APP TEXT", Short: "Find messages of stored conversations by words, and by meaning",
		Args:              arguments("a document: qtype memory search APP TEXT", "a text: qtype memory search APP TEXT"),
		ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) (err error) {
			p, list := qtype.Check(c.Context(), args[0])
			if err := list.Err(); err != nil {
				return err
			}
			app, err := qtype.New(p)
			if err != nil {
				return err
			}
			defer closeApp(c.Context(), app, &err)
			return r.search(c.Context(), app, args[1])
		},
	}
	r.withMemory(c)
	c.Flags().StringVarP(&r.session, "session", "s", "", "`ID` of the session (default: all)")
	c.Flags().StringVar(&r.user, "user", "", "`NAME` of the user whose sessions are searched")
	c.Flags().IntVarP(&r.limit, "limit", "n", search.DefaultLimit, "the maximum `NUMBER` of messages")
	return r.withFormat(c)
}

func (r *memorySearch) search(ctx context.Context, app *runtime.App, text string) error {
	if r.limit < 1 || r.limit > search.MaxLimit {
		return usagef("--limit must be from 1 to %d, not %d", search.MaxLimit, r.limit)
	}
	declared, err := r.one(app.Spec())
	if err != nil {
		return err
	}
	q := search.Query{Text: text, Limit: r.limit, Scope: search.All()}
	switch {
	case r.session != "":
		session, err := memoryview.FindSession(ctx, memoryview.Of(app, declared.ID), memory.UserSession(r.user, r.session))
		if err != nil {
			return err
		}
		q.Scope = search.Session(session)
	case r.user != "":
		q.Scope = search.User(r.user)
	}
	found, err := app.Searcher(declared.ID).Search(ctx, q)
	if err != nil {
		return err
	}
	if found.Problem != "" {
		fmt.Fprintf(r.Err, "warning: memory %s: not all messages were compared by meaning: %s\n", declared.ID, found.Problem)
	}
	return r.view().Found(found.Messages)
}
