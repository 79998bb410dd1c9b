package memory_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

func image(size int) chat.Block {
	return chat.Block{Type: "image", Data: make([]byte, size), MimeType: "image/png"}
}

// TestCompaction_DropImages checks each request of turns with images, as TestTurn_KeepsQuestion
// does, with each policy that drops them.
func TestCompaction_DropImages(t *testing.T) {
	testkit.SkipWithRace(t)
	for _, row := range spec.Policies() {
		if !row.Supports("drop_images") {
			continue
		}
		t.Run(string(row.Name), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				a := &agentTurns{limits: drawAgentLimits(t, row.Name), resultSize: 60}
				for _, key := range []string{"max_tokens", "token_limit"} {
					if a.limits[key] > 0 {
						a.limits[key] += 600
					}
				}
				a.cfg = memory.Config{ID: "m", Policy: row.Name, Limits: a.limits, Counter: runes{},
					Compact: memory.Compaction{ImageRounds: rapid.IntRange(1, 3).Draw(t, "drop_images")}}
				var err error
				a.memory, err = memory.New(a.cfg, memory.NewInProcess())
				testkit.Must(t, err)
				for range rapid.IntRange(1, 5).Draw(t, "turns") {
					a.run(t)
					checkWindowFollows(t, a)
				}
			})
		})
	}
}

// checkImages checks that the newest rounds, and no others, have their images.
func (a *agentTurns) checkImages(t *rapid.T, sent []chat.Message) {
	newest := a.cfg.Compact.ImageRounds
	if newest == 0 {
		return
	}
	round := 0 // from the end
	for i, m := range slices.Backward(sent) {
		whole := slices.ContainsFunc(m.Blocks, func(b chat.Block) bool { return b.Type == "image" })
		dropped := strings.Contains(m.Text(), "[image left out: image/png, 9 bytes]")
		if whole && round >= newest || dropped && round < newest {
			t.Fatalf("message %d is %v, in round %d from the end", i+1, m.Blocks, round)
		}
		if m.Role == chat.User && (i == 0 || sent[i-1].Role != chat.User) {
			round++
		}
	}
}

// TestCompaction_Captions checks what is sent in place of images, and what is stored.
func TestCompaction_Captions(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": 20}, Counter: runes{},
		Compact: memory.Compaction{ImageRounds: 2}}, memory.NewInProcess())
	testkit.Must(t, err)
	photo := chat.Text(chat.User, "my bicycle")
	photo.Blocks = append(photo.Blocks, image(1500), chat.Block{Type: "image", Text: "https://example.com/b.png"}, chat.Block{Type: "file", Data: []byte("%PDF"), MimeType: "application/pdf"})
	for range 2 {
		photo.ID = ""
		testkit.Must(t, m.Append(t.Context(), "s", photo, chat.Text(chat.Assistant, "I see")))
	}
	turn, err := m.Begin(t.Context(), "s")
	testkit.Must(t, err)
	photo.ID = ""
	testkit.Must(t, turn.Add(photo))
	sent, err := turn.Window()
	testkit.Must(t, err)
	testkit.Must(t, turn.Commit(t.Context()))
	if got, want := sent[0].Blocks, []chat.Block{{Type: "text", Text: "my bicycle"}, {Type: "text", Text: "[image left out: image/png, 1,500 bytes]"}, {Type: "text", Text: "[image left out]"}, photo.Blocks[3]}; len(got) != 4 || got[1].Text != want[1].Text || got[2].Text != want[2].Text || !got[3].Media() {
		t.Errorf("got %v", got)
	}
	for _, i := range []int{2, 4} {
		if len(sent[i].Blocks) != 4 || !sent[i].Blocks[1].Media() {
			t.Errorf("message %d is %v", i+1, sent[i].Blocks)
		}
	}
	var last memory.Event
	for e, err := range m.Events(t.Context(), "s") {
		testkit.Must(t, err)
		last = e
	}
	if last.Call == nil || last.Call.Imageless != "1" {
		t.Errorf("the event is %+v", last)
	}
	if whole, err := m.Message(t.Context(), "s", 1); err != nil || !whole.Blocks[1].Media() {
		t.Errorf("stored: %v, %v", whole.Blocks, err)
	}
}
