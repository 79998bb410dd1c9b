package replay_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/memoryview/replay"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// letters counts the letters of texts.
type letters struct{}

func (letters) Count(text string) int { return len([]rune(text)) }

// TestCost compares with prompts that are counted by hand: 4 questions and answers of 100
// letters, of which a window of 3 messages sends the last ones.
func TestCost(t *testing.T) {
	var in strings.Builder
	for n := range 4 {
		for _, role := range []string{"user", "assistant"} {
			fmt.Fprintf(&in, `{"role":%q,"content":"%0100d"}`+"\n", role, n)
		}
	}
	input, cached := 10.0, 1.0
	o := replay.CostOptions{Rules: spec.PromptCaching{Minimum: 100, Block: 10}, Prices: &catalogue.Prices{TierRates: catalogue.TierRates{Rates: catalogue.Rates{Input: &input, CachedInput: &cached}}}, Format: replay.JSON}
	m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyUnbounded, Counter: letters{}}, memory.NewInProcess())
	testkit.Must(t, err)
	question := int64(m.Tokens(chat.Text(chat.User, strings.Repeat("0", 100))))
	answer := int64(m.Tokens(chat.Text(chat.Assistant, strings.Repeat("0", 100))))
	var out strings.Builder
	declared := memory.Config{ID: "m", Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": 3}, Counter: letters{}}
	testkit.Must(t, replay.Cost(t.Context(), declared, strings.NewReader(in.String()), &out, o))
	got := map[string]replay.PolicyCost{}
	for line := range strings.Lines(out.String()) {
		var row replay.PolicyCost
		testkit.Must(t, json.Unmarshal([]byte(line), &row))
		got[fmt.Sprint(row.Policy, " ", row.Declared)] = row
	}
	blocks := func(questions, answers int64) int64 { return (questions*question + answers*answer) / 10 * 10 }
	price := func(prompt, cached int64) *float64 {
		p := float64((prompt-cached)*10+cached) / 1e6
		return &p
	}
	window := replay.PolicyCost{Policy: spec.PolicyMessageWindow, Declared: true, Limits: map[string]float64{"max_messages": 3}, Calls: 4,
		Prompt: 7*question + 3*answer, Cached: blocks(1, 0), Price: price(7*question+3*answer, blocks(1, 0))}
	all := blocks(1, 0) + blocks(2, 1) + blocks(3, 2)
	whole := replay.PolicyCost{Policy: spec.PolicyUnbounded, Limits: map[string]float64{}, Calls: 4, Prompt: 10*question + 6*answer, Cached: all, Price: price(10*question+6*answer, all)}
	if d := cmp.Diff(window, got["message_window true"]); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(whole, got["unbounded false"]); d != "" {
		t.Error(d)
	}
	if len(got) != 6 {
		t.Errorf("%d rows", len(got))
	}
}
