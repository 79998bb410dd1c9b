package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/erasure"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/encrypted"
	"github.com/qtype-dev/qtype/memory/promptcontext"
	"github.com/qtype-dev/qtype/runtime"
)

// memoryReencrypt is one call of qtype memory reencrypt.
type memoryReencrypt struct {
	memoryCommand
}

func newReencrypt(s *streams) *cobra.Command {
	r := &memoryReencrypt{memoryCommand{streams: s}}
	c := r.command("reencrypt", "Encrypt stored conversations again with the newest key", r.reencrypt)
	c.Long = `Encrypts what the store of a memory has with the key of its encryption: what was encrypted
with one of the old_keys and, with allow_unencrypted, what was not encrypted. The store stays
in use: give the new key to all processes first. Each session is read again with the new key
alone and compared. After an interruption, calling it again continues. When it has ended,
old_keys and allow_unencrypted can be removed. The state that qtype serve keeps in the store
is encrypted too.`
	c.Example = `  qtype memory reencrypt app.qtype.yaml
  qtype memory reencrypt app.qtype.yaml --memory chats`
	return c
}

func (r *memoryReencrypt) reencrypt(ctx context.Context, app *runtime.App) error {
	declared, err := r.declared(app.Spec())
	if err != nil {
		return err
	}
	ids := map[*encrypted.Store][]string{}
	var stores []*encrypted.Store
	for _, m := range declared {
		s, ok := app.StoreOf(m.ID).(*encrypted.Store)
		if !ok {
			if r.memory != "" {
				return fmt.Errorf("memory %s: its store declares no encryption", m.ID)
			}
			continue
		}
		if !slices.Contains(stores, s) {
			stores = append(stores, s)
		}
		ids[s] = append(ids[s], promptcontext.StoredMemories(app.Memory(m.ID).ID())...)
	}
	if len(stores) == 0 {
		return errors.New("no memory has a store with encryption")
	}
	for _, s := range stores {
		if memory.Store(s) == app.StateStore() {
			ids[s] = append(ids[s], erasure.ServerMemories()...)
		}
		if err := r.sessions(ctx, s, ids[s]); err != nil {
			return err
		}
	}
	return nil
}

// sessions encrypts the sessions of memories of a store.
func (r *memoryReencrypt) sessions(ctx context.Context, s *encrypted.Store, ids []string) error {
	var total encrypted.ReencryptReport
	var failed error
	for _, id := range ids {
		report, err := s.Reencrypt(ctx, id)
		total.Sessions, total.Same = total.Sessions+report.Sessions, total.Same+report.Same
		total.Messages, total.Events = total.Messages+report.Messages, total.Events+report.Events
		if err != nil {
			failed = fmt.Errorf("memory %s: %w", id, err)
			break
		}
	}
	text := fmt.Sprintf("store %s: %s with %s and %s encrypted again and compared", s.Location(),
		textfmt.Count(total.Sessions, "session"), textfmt.Count(int(total.Messages), "message"), textfmt.Count(int(total.Events), "event"))
	if total.Same > 0 {
		text += fmt.Sprintf(", %s had the key already", textfmt.Count(total.Same, "session"))
	}
	_, err := fmt.Fprintln(r.Out, text)
	return errors.Join(failed, err)
}
