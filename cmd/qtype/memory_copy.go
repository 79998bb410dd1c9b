package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/storecopy"
	"github.com/qtype-dev/qtype/runtime"
)

// memoryCopy is one call of qtype memory copy.
type memoryCopy struct {
	memoryCommand
	from, to  string
	unsecured *enumFlag // the side that is not encrypted
}

func newCopy(s *streams) *cobra.Command {
	r := &memoryCopy{memoryCommand: memoryCommand{streams: s}}
	c := r.command("copy", "Copy all sessions of a memory between two stores", r.copy)
	c.Long = `Copies the sessions of a memory from one store to another, of any kinds: with everything,
the vectors of retrieval included. Each copy is read again and compared. The stores may be
in use; calling it again continues, and copies what has changed since. A session that went
on in the target is left alone. One of the stores is that of the document, unless both are
named. If its store is encrypted, its keys are used for both.`
	c.Example = `  qtype memory copy app.qtype.yaml --to postgres://localhost/conversations
  qtype memory copy app.qtype.yaml --from sqlite:old.db --unencrypted from`
	c.Flags().StringVar(&r.from, "from", "", "`ADDRESS` of the store to read, such as sqlite:memory.db (default: that of the document)")
	c.Flags().StringVar(&r.to, "to", "", "`ADDRESS` of the store to write (default: that of the document)")
	r.unsecured = newEnumFlag("none", "from", "to")
	c.Flags().Var(r.unsecured, "unencrypted", "the store that is not encrypted, though that of the document is: from or to")
	return c
}

// stores returns the two stores of a memory.
func (r *memoryCopy) stores(app *runtime.App, id string) (from, to memory.Store, err error) {
	open := func(address, side string) (memory.Store, error) {
		if address == "" {
			return app.StoreOf(id), nil
		}
		encryption := app.Encryption(id)
		if r.unsecured.value == side {
			encryption = nil
		}
		s, err := app.OpenStore(address, encryption)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", side, err)
		}
		return s, nil
	}
	if from, err = open(r.from, "from"); err == nil {
		to, err = open(r.to, "to")
	}
	if err == nil && from == to {
		err = usagef("--from and --to are the same store")
	}
	return from, to, err
}

func (r *memoryCopy) copy(ctx context.Context, app *runtime.App) error {
	switch {
	case r.from == "" && r.to == "":
		return usagef("copy needs another store: pass --from, --to, or both")
	case r.unsecured.value == "from" && r.from == "" || r.unsecured.value == "to" && r.to == "":
		return usagef("--unencrypted %s needs --%s: the encryption of the document's store is declared there", r.unsecured.value, r.unsecured.value)
	}
	declared, err := r.declared(app.Spec())
	if err != nil {
		return err
	}
	var failed error
	for _, m := range declared {
		from, to, err := r.stores(app, m.ID)
		if err != nil {
			return err
		}
		report, err := storecopy.Copy(ctx, from, to, app.Memory(m.ID).ID())
		if err := r.report(m.ID, report); err != nil {
			return err
		}
		if err != nil {
			return fmt.Errorf("memory %s: %w", m.ID, err)
		}
		if n := len(report.Conflicts); n > 0 {
			failed = errors.Join(failed, fmt.Errorf("memory %s: the target has other sessions of the same ids, which were left alone: %s", m.ID, namesOf(report.Conflicts)))
		}
	}
	return failed
}

// namesOf lists the first ids.
func namesOf(ids []string) string {
	const shown = 5
	text := textfmt.List(ids[:min(len(ids), shown)])
	if n := len(ids) - shown; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return terminal.Clean(text)
}

func (r *memoryCopy) report(id string, c storecopy.Report) error {
	text := fmt.Sprintf("memory %s: %s with %s copied and compared", id, textfmt.Count(c.Copied, "session"), textfmt.Count(int(c.Messages), "message"))
	if c.Same > 0 {
		text += fmt.Sprintf(", %s the same already", textfmt.Count(c.Same, "session"))
	}
	if c.Newer > 0 {
		text += fmt.Sprintf(", %s newer in the target", textfmt.Count(c.Newer, "session"))
	}
	_, err := fmt.Fprintln(r.Out, text)
	return err
}
