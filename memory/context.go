package memory

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// ContextSource supplies what a memory sends to the model in addition to chat
// messages. Package internal/memory/promptcontext has the one of the language: pinned
// texts, variables, a running summary, and retrieved messages. It is safe for
// concurrent use.
type ContextSource interface {
	// Check returns an error if the source cannot be used.
	Check() error
	// Begin returns the context of a turn. It reads nothing yet.
	Begin(s ContextSession) TurnContext
	// Stale returns the values that the session gets when messages from a position on leave
	// it; nil values are removed.
	Stale(h store.Head, from int64) map[string][]byte
	// Withdraw removes shared values that depend on messages of the session from a
	// position on, which are about to be rewound.
	Withdraw(s ContextSession, from int64) error
	// Delete deletes what the source stored apart from the session. It is called
	// before the session is deleted, so that both can be repeated after a crash.
	Delete(ctx context.Context, store store.Store, key store.Key) error
	// Prune deletes what it stored for sessions of a memory that no longer exist.
	Prune(ctx context.Context, store store.Store, memory string) error
}

// PortableContext is implemented by a ContextSource with values that move with a session.
type PortableContext interface {
	// Portable returns the values of a session, as JSON, that a transcript has.
	Portable(h store.Head) map[string][]byte
	// Imported returns the value of a new session for one of a transcript, or why it is invalid.
	Imported(name string, value []byte) ([]byte, error)
}

// Preparer is a ContextSource that can do ahead what the next turn of a session would do.
type Preparer interface {
	// Prepare is called after a turn of a session with messages up to last. It may call run to do so in the background; open
	// returns the session as it is stored. run returns false if nothing is done.
	Prepare(key store.Key, last int64, run func(work func(open func() (ContextSession, error))) bool)
}

// TurnContext is the context of one turn.
type TurnContext interface {
	// Refresh updates the context before a call of the model.
	Refresh() error
	// State returns what the turn has read once, as JSON; Restore makes another turn send it.
	State() ([]byte, error)
	Restore(state []byte) error
	// Kept returns the id of the message that the context of the last call precedes, and the
	// text; empty if there was none.
	Kept() (id, text string)
	// Values returns the values of the session that a commit of the turn stores.
	Values() map[string][]byte
	// Assemble returns the context of a call that sends these messages; system is
	// nil for none. With preview set a user message is still to come.
	Assemble(system *store.Entry, sent []*store.Entry, preview bool) CallContext
}

// Repeater returns what an earlier attempt of a turn has recorded, else the result of read,
// which it records.
type Repeater func(read func() ([]byte, error)) ([]byte, error)

// CallContext is the context of one call of the model.
type CallContext interface {
	// MinTokens returns its size after everything was cut that may be cut.
	MinTokens() int
	// Tokens returns its size, without system message and chat messages.
	Tokens() int
	// Shrink cuts it to at most room tokens, as far as it may be cut.
	Shrink(room int)
	// Messages returns the messages that are sent, with the context.
	Messages(sent []*store.Entry) []chat.Message
	// Report describes each block.
	Report() []store.ContextBlockReport
}

// ContextSession is what a ContextSource sees of a session during a turn.
type ContextSession interface { //nolint:interfacebloat // one view of a turn; package memory alone implements it
	// Context is the turn's context.
	Context() context.Context
	// Key returns the key of the session.
	Key() store.Key
	// Store returns the memory's store.
	Store() store.Store
	// Head returns version, state and values of the session as the turn sees
	// them. The values must not be modified.
	Head() store.Head
	// Variables returns the variables of a scope, also of the open turn, in the order in
	// which they were set.
	Variables(scope Scope) ([]change.Variable, error)
	// KeepsContext reports whether the context of a question is stored with it.
	KeepsContext() bool
	// IsShared reports whether what belongs to a scope is not stored in the session
	// itself: other sessions use it too.
	IsShared(scope Scope) bool
	// Shared returns the head of the session that holds what belongs to a scope.
	Shared(scope Scope) (store.Head, error)
	// UpdateShared sets a value there, as Memory.UpdateValue does.
	UpdateShared(scope Scope, name string, change func(store.Head) (value []byte, ok bool)) error
	// Others yields the other sessions of a scope, as Memory.ListOf does.
	Others(scope Scope) iter.Seq2[store.SessionHead, error]
	// EntriesOf yields the entries of one of them from a position on that may be part of
	// the context, as Evicted does for the session.
	EntriesOf(l store.SessionHead, from int64) iter.Seq2[*store.Entry, error]
	// NewestUser returns the newest user message, nil for none.
	NewestUser() *chat.Message
	// FirstSent returns the position of the first message of the next call, pinned ones apart; the
	// position after the history if it is a message of the turn itself.
	FirstSent() int64
	// Evicted yields the entries from a position up to FirstSent that may be part of
	// the context: neither failed, rewound nor deleted nor from a window that was
	// replaced. An edited one has its new text.
	Evicted(from int64) iter.Seq2[*store.Entry, error]
	// Update sets a value of the session, with an event, during the turn. change
	// is called again after a conflict and returns false if there is nothing to do.
	Update(name string, change func(store.Head) (value []byte, e store.Event, ok bool)) error
	// Tokens returns the size of a message, Count that of a text.
	Tokens(msg *chat.Message) int
	Count(text string) int
	// Now returns the time in the precision of stores.
	Now() time.Time
}

// ContextPreview is the context that the next call would get, as committed.
// No model is called: the summary is the current one, and retrieval depends on a
// message that is still to come.
type ContextPreview struct {
	Parts   []store.ContextBlockReport // one for each block, in the order of the document
	Tokens  int                        // their size
	Room    int                        // tokens that the messages leave of token_limit
	Refused error                      // a *ContextError if the next call would fail; otherwise nil
}

// ContextError reports that the blocks of priority 0, which are never cut, do
// not fit into token_limit in addition to the messages.
type ContextError struct {
	Memory   string // the memory's id
	Limit    int    // token_limit
	Messages int    // tokens of the chat messages
	System   int    // tokens of the system message
	Context  int    // tokens of the blocks that are never cut
}

// Error names the sizes.
func (e *ContextError) Error() string {
	parts := fmt.Sprintf("the messages (%s)", textfmt.Thousands(e.Messages))
	if e.System > 0 {
		parts += fmt.Sprintf(", the system message (%s)", textfmt.Thousands(e.System))
	}
	return fmt.Sprintf("memory %s: token_limit is %s, but %s and the context that is never cut (%s: blocks of priority 0) need %s",
		e.Memory, textfmt.Thousands(e.Limit), parts, textfmt.Thousands(e.Context), textfmt.Thousands(e.Messages+e.System+e.Context))
}
