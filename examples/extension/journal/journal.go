// Package journal stores the conversations of one process in a file, to which it appends changes.
package journal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/part"
)

// Part is the type of stores journal, with addresses such as journal:chats.jsonl.
func Part() part.Part { return part.Store("journal", "a file to which changes are appended", open) }

type journal struct {
	store.Store // in the process, with the changes of the file
	file        *os.File
	mu          sync.Mutex
}

type line struct {
	Key    store.Key
	Change *store.Change // nil deletes the session
}

func open(address string) (store.Store, error) {
	path := strings.TrimPrefix(address, "journal:")
	text, _ := os.ReadFile(path) // of a new journal there is none
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	j := &journal{Store: memory.NewInProcess(), file: file}
	for raw := range bytes.Lines(text) {
		if l := new(line); json.Unmarshal(raw, l) == nil { // the last process may have ended within a line
			_ = j.apply(context.Background(), *l) // a change that was refused is refused again
		}
	}
	return j, err
}

func (j *journal) apply(ctx context.Context, l line) error {
	if l.Change == nil {
		return j.Store.Delete(ctx, l.Key)
	}
	return j.Store.Apply(ctx, l.Key, *l.Change)
}

func (j *journal) write(ctx context.Context, l line) error {
	text, err := json.Marshal(l)
	if err != nil || ctx.Err() != nil {
		return cmp.Or(err, ctx.Err())
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err = j.file.Write(append([]byte("\n"), text...)); err != nil {
		return err
	}
	return j.apply(context.WithoutCancel(ctx), l)
}

func (j *journal) Apply(ctx context.Context, key store.Key, c store.Change) error {
	return j.write(ctx, line{key, &c})
}

func (j *journal) Delete(ctx context.Context, key store.Key) error {
	return j.write(ctx, line{Key: key})
}
