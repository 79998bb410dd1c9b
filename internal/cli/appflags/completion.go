package appflags

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cli"
	sqlitestore "github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

const (
	completionTime = 500 * time.Millisecond // how long a completion may take
	maxCompletions = 100                    // sessions that are offered
)

// completer offers values for the shell. It reads local files only, runs nothing, and
// offers nothing if that takes long or fails.
type completer func(ctx context.Context, c *cobra.Command, p *qtype.Program, typed string) []string

// CompleteFlags adds completion to the flags of a command for a document, if it has them.
func CompleteFlags(c *cobra.Command) {
	for name, complete := range map[string]completer{"flow": completeFlows, "memory": completeMemories, "session": completeSessions, "approve": completeTools} {
		if f := c.Flags().Lookup(name); f == nil || f.Value.Type() == "bool" {
			continue
		}
		_ = c.RegisterFlagCompletionFunc(name, func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			ctx, cancel := context.WithTimeout(c.Context(), completionTime)
			defer cancel()
			read, _ := loader.Load(ctx, args[0], loader.Options{Offline: true}) // without its errors
			if read.Document == nil || read.Document.Application == nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return complete(ctx, c, &qtype.Program{Document: read.Document, Files: read.Files}, typed), cobra.ShellCompDirectiveNoFileComp
		}) // fails only for an unknown flag
	}
	for _, sub := range c.Commands() {
		CompleteFlags(sub)
	}
}

func completeFlows(_ context.Context, _ *cobra.Command, p *qtype.Program, typed string) []string {
	return cli.Matching(p.Document.Application.Flows, typed, func(f *spec.Flow) string { return f.ID })
}

func completeMemories(_ context.Context, _ *cobra.Command, p *qtype.Program, typed string) []string {
	return cli.Matching(p.Document.Application.Memories, typed, func(m *spec.Memory) string { return m.ID })
}

func completeTools(_ context.Context, _ *cobra.Command, p *qtype.Program, typed string) []string {
	return cli.Matching(p.Document.Application.Tools, typed, func(t spec.Tool) string { return t.Common().ID })
}

// completeSessions returns sessions in the default store of the document. Other stores may be
// on remote hosts and are not read.
func completeSessions(ctx context.Context, c *cobra.Command, p *qtype.Program, typed string) []string {
	if backend := c.Flags().Lookup("store"); backend != nil && backend.Changed {
		return nil
	}
	file, err := qtype.DefaultStoreFile(p)
	if err != nil {
		return nil
	}
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	backend, err := sqlitestore.Open(file)
	if err != nil {
		return nil
	}
	defer func() { _ = backend.Close() }() // only read
	prefix := ""
	if user := c.Flags().Lookup("user"); user != nil && user.Changed {
		prefix = memory.UserPrefix(user.Value.String())
	}
	wanted := ""
	if m := c.Flags().Lookup("memory"); m != nil {
		wanted = m.Value.String()
	}
	var ids []string
	for _, m := range p.Document.Application.Memories {
		if wanted != "" && m.ID != wanted || !m.Store.IsZero() || len(p.Document.Application.Stores) > 0 {
			continue
		}
		heads, err := store.ListSessions(ctx, backend, runtime.DefaultStoreID(p.Document.Application, m), store.SessionQuery{Prefix: prefix + typed, Limit: maxCompletions})
		if err != nil {
			return nil
		}
		for _, h := range heads {
			ids = append(ids, strings.TrimPrefix(h.Session, prefix))
		}
	}
	return ids
}
