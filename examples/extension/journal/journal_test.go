package journal

import (
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

func TestJournal(t *testing.T) {
	storetest.RunDurable(t, func(t *testing.T, place string) store.Store {
		s, err := open("journal:" + filepath.Join(place, "chats.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
