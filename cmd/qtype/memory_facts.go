package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/promptcontext"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// memoryFacts is one call of qtype memory facts.
type memoryFacts struct {
	memoryCommand
	user string
	add  string // the text of a new fact
	edit string // the id of the fact to change
	text string // its new text
	drop string // the id of the fact to delete
}

func newFacts(s *streams) *cobra.Command {
	r := &memoryFacts{memoryCommand: memoryCommand{streams: s}}
	c := r.withFormat(r.withSession(r.command("facts", "Show, add, edit or delete what a memory knows of a user", r.facts)))
	c.Long = `Shows the facts that a model extracted from the messages of a user, those that no
longer hold included, each with the message that states it and its former texts.
With --add, --edit or --delete, changes them; a model cannot add a fact again that
was deleted this way.`
	c.Example = `  qtype memory facts app.qtype.yaml --user ada
  qtype memory facts app.qtype.yaml --user ada --edit f3 --text 'The user lives in Rome.'
  qtype memory facts app.qtype.yaml --user ada --delete f3`
	c.Flags().Lookup("session").Usage = "`ID` of the session"
	f := c.Flags()
	f.StringVar(&r.user, "user", "", "`NAME` of the user")
	f.StringVar(&r.add, "add", "", "add a fact with this `TEXT`")
	f.StringVar(&r.edit, "edit", "", "`ID` of the fact that gets --text")
	f.StringVar(&r.text, "text", "", "the new `TEXT` of the fact of --edit")
	f.StringVar(&r.drop, "delete", "", "`ID` of the fact to delete")
	c.MarkFlagsMutuallyExclusive("add", "edit", "delete")
	c.MarkFlagsRequiredTogether("edit", "text")
	return c
}

func (r *memoryFacts) facts(ctx context.Context, app *runtime.App) error {
	declared, err := r.withFacts(app.Spec())
	if err != nil {
		return err
	}
	if r.user == "" && r.session == "" {
		return usagef("whose facts? pass --user or --session")
	}
	m := memoryview.Of(app, declared.ID)
	if r.add != "" || r.edit != "" || r.drop != "" {
		return r.change(ctx, m)
	}
	n, err := r.view().Facts(ctx, m, memory.UserSession(r.user, r.session))
	if err != nil {
		return err
	}
	if r.session == "" { // facts of the sessions of the user
		for l, err := range m.ListOf(ctx, memory.UserScope, memory.UserSession(r.user, "")) {
			if err != nil {
				return err
			}
			more, err := r.view().Facts(ctx, m, l.Session)
			if n += more; err != nil {
				return err
			}
		}
	}
	if n == 0 && r.format.value == "text" {
		_, err = fmt.Fprintln(r.Out, "no facts")
	}
	return err
}

// withFacts returns the memory of --memory, or the only one that has facts.
func (r *memoryFacts) withFacts(app *spec.Application) (*spec.Memory, error) {
	all, err := r.declared(app)
	if err != nil {
		return nil, err
	}
	var found []*spec.Memory
	for _, m := range all {
		for _, b := range m.Context {
			if _, ok := b.(*spec.FactsBlock); ok {
				found = append(found, m)
			}
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("%s has no context block of type facts", textfmt.List(memoryIDs(all)))
	case len(found) > 1:
		return nil, usagef("which memory? --memory is one of %s", textfmt.List(memoryIDs(found)))
	}
	return found[0], nil
}

// change adds, edits or deletes a fact.
func (r *memoryFacts) change(ctx context.Context, m memoryview.Memory) error {
	list := memory.UserSession(r.user, r.session)
	if info, err := m.Head(ctx, list); r.session != "" && (err != nil || info.Version == 0) {
		if err == nil {
			err = fmt.Errorf("memory %s has no session %q", m.ID, list)
		}
		return err
	}
	id, done := r.edit, "changed"
	var err error
	switch {
	case r.drop != "":
		id, done = r.drop, "deleted"
		err = promptcontext.RemoveFact(ctx, m.Memory, list, id)
	case r.add != "":
		done = "added"
		id, err = promptcontext.PutFact(ctx, m.Memory, list, "", r.add)
	default:
		_, err = promptcontext.PutFact(ctx, m.Memory, list, r.edit, r.text)
	}
	var failed *promptcontext.FactError
	if errors.As(err, &failed) && failed.ID != "" {
		return fmt.Errorf("%w%s", err, diag.DidYouMean(failed.ID, failed.Known))
	}
	if err == nil {
		_, err = fmt.Fprintf(r.Out, "memory %s: fact %s %s\n", m.ID, terminal.Clean(id), done)
	}
	return err
}
