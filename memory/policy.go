package memory

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Limits are what may change while a memory is in use. Only those of the
// memory's own policy may be set; zero means the default that is named here,
// and message_window and token_window, which have none, refuse it.
type Limits struct {
	TokenLimit  int     // flush: tokens that window and context together may hold; 100,000
	ChatShare   float64 // flush: the share of TokenLimit for chat messages, above 0 and at most 1; 0.7
	FlushSize   int     // flush: tokens that leave at a time at least; 3,000
	MaxMessages int     // message_window: the most messages in the window
	MaxTokens   int     // token_window: the most tokens in the window
	NRounds     int     // round_window: the most rounds in the window; 3
	MaxContext  int     // round_window: the most characters in the window; 10,000
}

// limit is one limit as a user knows it.
type limit struct {
	key    string // its name in a document
	policy spec.Policy
	set    bool
	bad    bool   // its value cannot be
	want   string // what it must be
	value  any
}

func (l Limits) each() []limit {
	whole := func(key string, p spec.Policy, n int) limit {
		return limit{key: key, policy: p, set: n != 0, bad: n < 0, want: "positive", value: n}
	}
	return []limit{
		whole("token_limit", spec.PolicyFlush, l.TokenLimit),
		{key: "chat_history_token_ratio", policy: spec.PolicyFlush, set: l.ChatShare != 0,
			bad:  l.ChatShare != 0 && !(l.ChatShare > 0 && l.ChatShare <= 1), // refuses NaN too
			want: "above 0 and at most 1", value: l.ChatShare},
		whole("token_flush_size", spec.PolicyFlush, l.FlushSize),
		whole("max_messages", spec.PolicyMessageWindow, l.MaxMessages),
		whole("max_tokens", spec.PolicyTokenWindow, l.MaxTokens),
		whole("n_rounds", spec.PolicyRoundWindow, l.NRounds),
		whole("max_context", spec.PolicyRoundWindow, l.MaxContext),
	}
}

// check refuses limits that cannot be, and those of another policy.
func (l Limits) check(p spec.Policy) error {
	for _, one := range l.each() {
		switch {
		case one.set && one.policy != p:
			return fmt.Errorf("%s is a limit of policy %s, not of %s", one.key, one.policy, p)
		case one.bad:
			return fmt.Errorf("%s must be %s, not %v", one.key, one.want, one.value)
		}
	}
	return nil
}

// LimitNames are the limits that a policy has, as a document names them.
func LimitNames(p spec.Policy) []string {
	var names []string
	for _, one := range (Limits{}).each() {
		if one.policy == p {
			names = append(names, one.key)
		}
	}
	return names
}

// PolicyOfLimit is the policy that a limit belongs to, empty where no policy has it.
func PolicyOfLimit(key string) spec.Policy {
	for _, one := range (Limits{}).each() {
		if one.key == key {
			return one.policy
		}
	}
	return ""
}

// Unit is what a window is measured in.
type Unit string

// The units.
const (
	InTokens     Unit = "tokens"
	InMessages   Unit = "messages"
	InCharacters Unit = "characters" // Unicode code points of the messages' texts
	InRounds     Unit = "rounds"     // a user message and all up to the next one
)

// evictionPolicy decides what leaves a window. Everything it needs is in the view, so
// that what the window holds follows from what the store holds.
type evictionPolicy interface {
	// evictCount tells how many of the oldest entries leave for good; own is the index
	// of the newest append's or turn's first message, user that of the last
	// user message up to own, or -1.
	evictCount(v *view, own, user int) int
	// selectForCall is what is sent of the entries that fit left.
	selectForCall(v *view) selection
	// usage tells how full a window of so many messages and tokens is, the system
	// message among them where it counts: what is counted, its limit, 0 for none,
	// and the unit. Characters are counted by sent.
	usage(messages, tokens int) (used, limit int, unit Unit)
	// countsSystem tells whether the system message is a message of the window like the
	// others: it counts, it stands where it was said, and an equal one is not said again.
	countsSystem() bool
	// describe completes an eviction's event: rest is what is left of the window.
	describe(e *Event, rest []*Entry)
}

// selection is what is sent of a view's entries.
type selection struct {
	from int      // the index of the first entry that is sent
	cut  []*Entry // copies with less text, in the place of the first entries that are sent
	note bool     // max_context took something away
	used int      // round_window: characters that are sent
}

// newPolicy makes a policy with its limits.
func newPolicy(kind spec.Policy, l Limits) (evictionPolicy, error) {
	if err := l.check(kind); err != nil {
		return nil, err
	}
	switch kind {
	case spec.PolicyFlush:
		return newFlush(l), nil
	case spec.PolicyMessageWindow:
		if l.MaxMessages == 0 {
			return nil, fmt.Errorf("policy %s needs max_messages, above 0", kind)
		}
		return &messageWindow{max: l.MaxMessages}, nil
	case spec.PolicyTokenWindow:
		if l.MaxTokens == 0 {
			return nil, fmt.Errorf("policy %s needs max_tokens, above 0", kind)
		}
		return &tokenWindow{max: l.MaxTokens}, nil
	case spec.PolicyRoundWindow:
		return newRounds(l), nil
	case spec.PolicyUnbounded:
		return unbounded{}, nil
	}
	return nil, fmt.Errorf("unknown policy %q: it is flush, message_window, token_window, round_window or unbounded", kind)
}

// unbounded keeps everything.
type unbounded struct{}

func (unbounded) evictCount(*view, int, int) int       { return 0 }
func (unbounded) selectForCall(*view) selection        { return selection{} }
func (unbounded) usage(_, tokens int) (int, int, Unit) { return tokens, 0, InTokens }
func (unbounded) countsSystem() bool                   { return false }
func (unbounded) describe(*Event, []*Entry)            {}

// result tells whether a message of this role answers a tool call.
func result(r chat.Role) bool { return r == chat.Tool || r == chat.Function }

// unit is how many of the entries leave together when the first one does: a tool
// call takes along the results that directly follow it (reference memory.md 3.4,
// 5.3). The system message is no part of the entries, so one that was said in
// between does not come between them.
func unit(entries []*Entry) int {
	n := 1
	if len(entries[0].Message.ToolCalls) > 0 {
		for n < len(entries) && result(entries[n].Message.Role) {
			n++
		}
	}
	return n
}

// counted is "1 message", "2 messages".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}

// sameSystem tells whether two system messages say the same.
func sameSystem(a, b *chat.Message) bool {
	if a.Name != b.Name || len(a.Blocks) != len(b.Blocks) {
		return false
	}
	for i, block := range a.Blocks {
		other := b.Blocks[i]
		if block.Type != other.Type || block.Text != other.Text || block.MimeType != other.MimeType || string(block.Data) != string(other.Data) {
			return false
		}
	}
	return true
}

// oneLine is text without line ends.
func oneLine(text string) string { return strings.Join(strings.Fields(validText(text)), " ") }
