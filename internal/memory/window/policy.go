// Package window selects which messages of a session a model receives, and which leave. A
// View is a session at one version; a Policy evicts entries of a View, and selects those of a
// call. All of it follows from the messages and the limits: nothing here reads a store.
package window

import (
	"fmt"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
)

// Limits are the limits of a policy by their keys in a document, such as
// Limits{"max_messages": 10}. A limit that is not there has its default. The
// keys, units and defaults of each policy are in spec.Policies.
type Limits map[string]float64

// complete returns the limits with defaults, or an error for a limit of
// another policy, a value out of range and a missing required limit.
func (l Limits) complete(row spec.PolicyRow) (Limits, error) {
	for _, key := range slices.Sorted(maps.Keys(l)) {
		limit, ok := row.Limit(key)
		if !ok {
			if owners, depends := spec.PoliciesWith(key); depends {
				return nil, fmt.Errorf("%s is a limit of policy %s, not of %s", key, owners[0], row.Name)
			}
			return nil, fmt.Errorf("%q is not a limit of policy %s", key, row.Name)
		}
		if !limit.Allows(l[key]) {
			return nil, fmt.Errorf("%s must be %s, not %v", key, limit.Range(), l[key])
		}
	}
	all := Limits{}
	for _, limit := range row.Limits {
		value, ok := l[limit.Key]
		if !ok {
			if value, ok = limit.Default(); !ok {
				return nil, fmt.Errorf("policy %s needs %s, above 0", row.Name, limit.Key)
			}
		}
		all[limit.Key] = value
	}
	return all, nil
}

func (l Limits) int(key string) int { return int(l[key]) }

// Policy decides which entries leave a window. It looks at nothing but
// the view, so that the window follows from what the store has.
type Policy interface {
	// Evict returns the entries that leave for good. own is the index of the first
	// message of the newest append or turn, user that of the last user message up to own,
	// or -1. The view's tokens include messages that stay and are not among its entries;
	// reserved is the number of these messages.
	Evict(v *View, own, user int) Eviction
	// SelectForCall returns what is sent of the entries that Evict left.
	SelectForCall(v *View) Selection
	// Usage returns what the limit counts, the limit (0 for none) and its unit,
	// for a window with the given numbers of messages and tokens.
	Usage(messages, tokens int) (used, limit int, unit store.Unit)
	// CountsSystem reports whether the system message is a message like the
	// others: it counts, keeps its place, and an equal one is not added again.
	CountsSystem() bool
	// Describe sets the reason of an eviction's event if it cannot be derived
	// from the event's numbers later; rest is what is left of the window.
	Describe(e *store.Event, rest []*store.Entry)
}

// CompactingPolicy is a Policy with Compaction.At.
type CompactingPolicy interface {
	// CompactAt sets the share of the limit at which messages leave.
	CompactAt(share float64)
}

// ContextPolicy is a Policy that leaves room for context.
type ContextPolicy interface {
	// ContextLimit returns the most tokens that messages and context may have together.
	ContextLimit() int
}

// Rereader is a Policy that can show messages again that an earlier
// limit excluded: its views hold more than is sent.
type Rereader interface {
	Policy
	// Covers reports whether the view has all that a read may need.
	Covers(v *View) bool
	// WithOptions returns the policy for one read.
	WithOptions(o ReadOptions) (Policy, error)
	// SelectKept is SelectForCall for a view with kept entries, which are sent whole
	// before the newest of the entries after them.
	SelectKept(v *View, kept Eviction) Selection
	// Evicted sets the event for what left the window since its first position
	// was first; before and added are the entries of the window then and of the
	// change. It returns nil if nothing left.
	Evicted(v *View, first int64, before, added []*store.Entry) *store.Event
}

// Selection is what is sent of a view's entries.
type Selection struct {
	Left Eviction       // the entries that are not sent
	Cut  []*store.Entry // copies with shorter texts that replace the first entries that are sent
	Note bool           // max_context removed something
	Used int            // rereader: characters that are sent
}

// Entries returns the entries of v that are sent.
func (s Selection) Entries(v *View) []*store.Entry {
	rest := s.Left.Rest(v.Entries)
	rest = rest[:len(rest):len(rest)]
	if len(s.Cut) == 0 {
		return rest
	}
	return append(slices.Clip(slices.Clone(s.Cut)), rest[len(s.Cut):]...)
}

// ReadOptions override the limits of a round_window for one read. Zero fields
// keep what is declared.
type ReadOptions struct {
	NRounds    int    // the most rounds
	MaxContext int    // the most characters
	Notice     string // the notice that something was cut
	NoNotice   bool   // no notice; its room is available for messages
	Empty      string // ReadText: the text for an empty session
}

// ChangesLimits reports whether the options do more than replace the text of an empty session.
func (o ReadOptions) ChangesLimits() bool { return o != (ReadOptions{Empty: o.Empty}) }

// SizeOf returns the messages and tokens of v that a policy counts.
func SizeOf(p Policy, v *View) (messages, tokens int) {
	if p.CountsSystem() {
		return len(v.Entries) + v.SystemCount(), v.Tokens + v.SystemTokens()
	}
	return len(v.Entries), v.Tokens + v.Others
}

// Compacted returns the view as it is sent: without the images of old rounds, and with short
// forms of old results if it exceeds the limit without them.
func Compacted(p Policy, v *View) *View {
	if v.Compactor == nil {
		return v
	}
	v = v.withoutImages()
	if used, limit, unit := p.Usage(SizeOf(p, v)); limit == 0 || used <= limit || unit != store.InTokens {
		return v
	}
	return v.Shortened()
}

// KeepAll is the part of a policy that sends all that it has not evicted, and does
// not count the system message.
type KeepAll struct{}

// SelectForCall selects all entries.
func (KeepAll) SelectForCall(*View) Selection { return Selection{} }

// CountsSystem reports false.
func (KeepAll) CountsSystem() bool { return false }

// Describe leaves the event as it is.
func (KeepAll) Describe(*store.Event, []*store.Entry) {}

// countedSystem is the part of a policy that treats the system message like other messages.
type countedSystem struct{}

func (countedSystem) CountsSystem() bool                    { return true }
func (countedSystem) Describe(*store.Event, []*store.Entry) {}

// windowReason names the limit, by how much it was exceeded, and how much left.
func windowReason(e store.Event, key, before, excess, left string) string {
	if e.Before <= e.Limit {
		return "tool results left because their call had left before"
	}
	return fmt.Sprintf("%s exceeded %s %s; %s had to leave, %s left", before, key, textfmt.Thousands(e.Limit), excess, left)
}

// NewestRound returns the index at which the newest round begins, which is
// never evicted. own and user are as for Evict. If no user message precedes the
// turn, the round begins at the first one in it, so that a flushed window
// begins with a user message; if there is none at all, the turn's own messages
// stay, and with a tool result its call.
func NewestRound(entries []*store.Entry, own, user int) int {
	if user >= 0 {
		return user
	}
	for i := own; i < len(entries); i++ {
		if IsUser(entries[i]) {
			return i
		}
	}
	for i := own; i >= 0; i-- {
		if entries[i].Message.HasCalls() {
			return i
		}
		if !IsResult(entries[i]) {
			break
		}
	}
	return own
}

// orphanedResults returns how many entries at the front are results of a tool
// call that left before they came: they leave at once.
func orphanedResults(v *View) int {
	n := 0
	if v.State.Open {
		for n < len(v.Entries) && IsResult(v.Entries[n]) {
			n++
		}
	}
	return n
}
