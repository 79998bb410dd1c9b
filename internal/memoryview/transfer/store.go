package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/memory/storecopy"
	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
)

// App is the part of runtime.App that this package needs.
type App interface {
	memoryview.App
	StoreOf(id string) memory.Store
	State() store.Application
	Encryption(id string) *spec.Encryption
	OpenStore(address string, e *spec.Encryption) (memory.Store, error)
}

// Sides of a copy.
const (
	From = "from"
	To   = "to"
)

// Stores are the addresses of two stores; an empty one is that of the document.
type Stores struct {
	From, To    string
	Unencrypted string // From or To: this store is not encrypted, though that of the document is
}

// check rejects stores between which nothing can be copied.
func (s *Stores) check() error {
	switch {
	case s.From == "" && s.To == "":
		return terminal.Usagef("copy needs another store: pass --from, --to, or both")
	case s.Unencrypted == From && s.From == "" || s.Unencrypted == To && s.To == "":
		return terminal.Usagef("--unencrypted %s needs --%s: the encryption of the document's store is declared there", s.Unencrypted, s.Unencrypted)
	}
	return nil
}

// open opens the store of one side for a memory.
func (s *Stores) open(app App, id, side, address string) (memory.Store, error) {
	if address == "" {
		return app.StoreOf(id), nil
	}
	encryption := app.Encryption(id)
	if s.Unencrypted == side {
		encryption = nil
	}
	store, err := app.OpenStore(address, encryption)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", side, err)
	}
	return store, nil
}

// both opens both stores for a memory.
func (s *Stores) both(app App, id string) (from, to memory.Store, err error) {
	if from, err = s.open(app, id, From, s.From); err == nil {
		to, err = s.open(app, id, To, s.To)
	}
	if err == nil && from == to {
		err = terminal.Usagef("--from and --to are the same store")
	}
	return from, to, err
}

// Copy copies the sessions of the selected memories between stores and writes a line for each memory.
func Copy(ctx context.Context, app App, selected *memoryview.Selection, stores Stores, out io.Writer) error {
	if err := stores.check(); err != nil {
		return err
	}
	declared, err := selected.Declared(app.Spec())
	if err != nil {
		return err
	}
	var failed error
	for _, m := range declared {
		from, to, err := stores.both(app, m.ID)
		if err != nil {
			return err
		}
		report, err := storecopy.Copy(ctx, from, to, app.Memory(m.ID).ID())
		if err := writeCopied(out, m.ID, report); err != nil {
			return err
		}
		if err != nil {
			return fmt.Errorf("memory %s: %w", m.ID, err)
		}
		if len(report.Conflicts) > 0 {
			failed = errors.Join(failed, fmt.Errorf("memory %s: the target has other sessions of the same ids, which were left alone: %s", m.ID, firstOf(report.Conflicts)))
		}
	}
	return failed
}

// firstOf lists the first ids.
func firstOf(ids []string) string {
	const shown = 5
	text := textfmt.List(ids[:min(len(ids), shown)])
	if n := len(ids) - shown; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return terminal.Clean(text)
}

func writeCopied(out io.Writer, id string, c storecopy.Report) error {
	text := fmt.Sprintf("memory %s: %s with %s copied and compared", id, textfmt.Count(c.Copied, "session"), textfmt.Count(c.Messages, "message"))
	if c.Same > 0 {
		text += fmt.Sprintf(", %s the same already", textfmt.Count(c.Same, "session"))
	}
	if c.Newer > 0 {
		text += fmt.Sprintf(", %s newer in the target", textfmt.Count(c.Newer, "session"))
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// Reencrypt encrypts the sessions of the selected memories again with the newest keys of their stores,
// and the records of the application with those of the store that has them. It writes a line for each store.
func Reencrypt(ctx context.Context, app App, selected *memoryview.Selection, out io.Writer) error {
	declared, err := selected.Declared(app.Spec())
	if err != nil {
		return err
	}
	named := selected.Memory != ""
	stored := map[*encrypted.Store][]string{}
	var stores []*encrypted.Store
	for _, m := range declared {
		s, ok := app.StoreOf(m.ID).(*encrypted.Store)
		if !ok && named {
			return fmt.Errorf("memory %s: its store declares no encryption", m.ID)
		}
		if !ok {
			continue
		}
		if !slices.Contains(stores, s) {
			stores = append(stores, s)
		}
		stored[s] = append(stored[s], promptcontext.StoredMemories(app.Memory(m.ID).ID())...)
	}
	for _, s := range stores {
		if memory.Store(s) == app.State().Store {
			for _, kind := range appstate.Kinds() {
				stored[s] = append(stored[s], app.State().Records(kind).Memory())
			}
		}
		if err := reencryptStore(ctx, s, stored[s], out); err != nil {
			return err
		}
	}
	if len(stores) == 0 {
		return errors.New("no memory has a store with encryption")
	}
	return nil
}

// reencryptStore encrypts the sessions of memories of a store.
func reencryptStore(ctx context.Context, s *encrypted.Store, memories []string, out io.Writer) error {
	var total encrypted.ReencryptReport
	var failed error
	for _, id := range memories {
		report, err := s.Reencrypt(ctx, id)
		total.Sessions, total.Same = total.Sessions+report.Sessions, total.Same+report.Same
		total.Messages, total.Events = total.Messages+report.Messages, total.Events+report.Events
		if err != nil {
			failed = fmt.Errorf("memory %s: %w", id, err)
			break
		}
	}
	text := fmt.Sprintf("store %s: %s with %s and %s encrypted again and compared", s.Location(),
		textfmt.Count(total.Sessions, "session"), textfmt.Count(total.Messages, "message"), textfmt.Count(total.Events, "event"))
	if total.Same > 0 {
		text += fmt.Sprintf(", %s had the key already", textfmt.Count(total.Same, "session"))
	}
	_, err := fmt.Fprintln(out, text)
	return errors.Join(failed, err)
}
