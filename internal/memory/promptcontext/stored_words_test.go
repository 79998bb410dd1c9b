package promptcontext_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// withRetrieval returns a memory whose turns store words in the background; wait waits for that.
func withRetrieval(t *testing.T, store memory.Store, b promptcontext.Block) (m *memory.Memory, wait func()) {
	var work sync.WaitGroup
	b.Kind, b.Priority = promptcontext.Retrieval, 1
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 20_000, "chat_history_token_ratio": 0.1, "token_flush_size": 500}, Counter: runes{},
		Context: promptcontext.New(func(problem string) { t.Error(problem) }, b),
		Background: func(do func(context.Context)) bool {
			work.Go(func() { do(context.Background()) })
			return true
		}}, store)
	testkit.Must(t, err)
	return m, work.Wait
}

// retrieved returns the last message that a turn sends to the model: the question with what was retrieved.
func retrieved(t *testing.T, m *memory.Memory, question string) string {
	sent := runTurn(t, m, question, "noted")
	return sent[len(sent)-1].Text()
}

// TestRetrieval_OldMessages checks that retrieval finds messages before the newest ones when their words are stored, after a turn or
// by a search, in running processes and in new ones, and not those that were edited, deleted or rewound.
func TestRetrieval_OldMessages(t *testing.T) {
	store := memory.NewInProcess()
	m, wait := withRetrieval(t, store, promptcontext.Block{TopK: 3})
	var all []chat.Message
	for i := range 9_000 {
		all = append(all, chat.Text(chat.User, fmt.Sprintf("loaf%d of bread%d", i%211, i%1009)))
	}
	for position, text := range map[int]string{4: "the zanzibar key", 5: "the timbuktu key", 6: "the samarkand key", 7: "the kathmandu key"} {
		all[position-1] = chat.Text(chat.User, text)
	}
	testkit.Must(t, m.Append(t.Context(), "s", all...))
	if sent := retrieved(t, m, "Where is zanzibar?"); strings.Contains(sent, "the zanzibar key") {
		t.Error("a message was found whose words are not stored")
	}
	wait()
	fresh := func() *memory.Memory { m, _ := withRetrieval(t, store, promptcontext.Block{TopK: 3}); return m }
	for name, m := range map[string]*memory.Memory{"running": m, "new": fresh()} {
		if sent := retrieved(t, m, "Where is zanzibar?"); !strings.Contains(sent, "the zanzibar key") {
			t.Errorf("%s: sent %s", name, sent)
		}
	}
	testkit.Must(t, m.Edit(t.Context(), "s", 5, chat.Text(chat.User, "the valparaiso key")))
	testkit.Must(t, m.Delete(t.Context(), "s", 6))
	for range 2 {
		retrieved(t, m, "Hello")
		wait()
	}
	words, err := m.Words(t.Context(), memory.SessionHead{Session: "s", Head: headOf(t, m)})
	testkit.Must(t, err)
	if words.To() < 9_000 {
		t.Errorf("after an edit, words are stored up to %d", words.To())
	}
	for name, m := range map[string]*memory.Memory{"running": m, "new": fresh()} {
		for question, want := range map[string]bool{"valparaiso": true, "timbuktu": false, "samarkand": false, "kathmandu": true} {
			if sent := retrieved(t, m, "Where is "+question+"?"); strings.Contains(sent, "the "+question+" key") != want {
				t.Errorf("%s, %s: sent %s", name, question, sent)
			}
		}
	}
	testkit.Must(t, m.Rewind(t.Context(), "s", 1))
	for name, m := range map[string]*memory.Memory{"running": m, "new": fresh()} {
		if sent := retrieved(t, m, "Where is kathmandu?"); strings.Contains(sent, "the kathmandu key") {
			t.Errorf("%s: a rewound message was sent: %s", name, sent)
		}
	}
}

// TestRetrieval_DeletionIsRewound finds a message again whose deletion was rewound.
func TestRetrieval_DeletionIsRewound(t *testing.T) {
	m, wait := withRetrieval(t, memory.NewInProcess(), promptcontext.Block{TopK: 3})
	defer wait()
	var all []chat.Message
	for i := range 400 {
		all = append(all, chat.Text(chat.User, fmt.Sprintf("loaf%d of bread%d, as the baker said", i%211, i)))
	}
	all[4] = chat.Text(chat.User, "the zanzibar key")
	testkit.Must(t, m.Append(t.Context(), "s", all...))
	for range 2 {
		testkit.Must(t, m.Delete(t.Context(), "s", 5))
		turn := headOf(t, m).State.Turns
		if sent := retrieved(t, m, "Where is zanzibar?"); strings.Contains(sent, "the zanzibar key") {
			t.Errorf("deleted: sent %s", sent)
		}
		testkit.Must(t, m.Rewind(t.Context(), "s", turn))
		if sent := retrieved(t, m, "Where is zanzibar?"); !strings.Contains(sent, "the zanzibar key") {
			t.Errorf("deletion rewound: sent %s", sent)
		}
	}
}

// withoutDeletion is a store with words that are damaged and cannot be deleted.
type withoutDeletion struct{ memory.Store }

func (s withoutDeletion) Head(ctx context.Context, key memory.Key) (memory.Head, error) {
	head, err := s.Store.Head(ctx, key)
	if strings.HasPrefix(key.Session, "s\x00") && strings.HasSuffix(key.Session, "000001") {
		head.Values = map[string][]byte{"000000": []byte("damaged")}
	}
	return head, err
}

func (s withoutDeletion) Delete(ctx context.Context, key memory.Key) error {
	if strings.HasPrefix(key.Session, "s\x00") {
		return errors.New("read-only")
	}
	return s.Store.Delete(ctx, key)
}

// TestRetrieval_DamagedWords searches the newest messages if stored words can be neither read nor deleted.
func TestRetrieval_DamagedWords(t *testing.T) {
	store := memory.NewInProcess()
	m, wait := withRetrieval(t, store, promptcontext.Block{TopK: 3})
	var all []chat.Message
	for i := range 9_000 {
		all = append(all, chat.Text(chat.User, fmt.Sprintf("loaf%d of bread%d", i%211, i%1009)))
	}
	all[8_000] = chat.Text(chat.User, "the zanzibar key")
	testkit.Must(t, m.Append(t.Context(), "s", all...))
	retrieved(t, m, "Hello")
	wait()
	m, wait = withRetrieval(t, withoutDeletion{store}, promptcontext.Block{TopK: 3})
	defer wait()
	if sent := retrieved(t, m, "Where is zanzibar?"); !strings.Contains(sent, "the zanzibar key") {
		t.Errorf("sent %s", sent)
	}
}

func headOf(t *testing.T, m *memory.Memory) memory.Head {
	head, err := m.Head(t.Context(), "s")
	testkit.Must(t, err)
	return head
}
