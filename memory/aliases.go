package memory

import (
	"github.com/qtype-dev/qtype/internal/memory/budget"
	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/history"
	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

type ( // of package memory/store
	// Store keeps the sessions of memories.
	Store = store.Store
	// Key names a session.
	Key = store.Key
	// Head is the current version, state and values of a session.
	Head = store.Head
	// Entry is a message of a history.
	Entry = store.Entry
	// Event is a change of a session's window or values.
	Event = store.Event
	// SessionHead is a session with its head.
	SessionHead = store.SessionHead
	// StoreError is a failure of a store.
	StoreError = store.Error
)

type ( // what a Config and the results of a Memory consist of
	// Window is what the next call of a model receives.
	Window = window.Window
	// Counter counts the tokens of a text.
	Counter = window.Counter
	// MessageCounter counts whole messages by a rule other than that of Tokens.
	MessageCounter = window.MessageCounter
	// Limits are the limits of a policy by their keys in a document.
	Limits = window.Limits
	// Compaction is what is shortened before messages leave.
	Compaction = window.Compaction
	// ReadOptions are the limits of a round_window for one read.
	ReadOptions = window.ReadOptions
	// BalanceError reports tool calls and results that do not belong together.
	BalanceError = window.BalanceError
	// Variable is a named value that steps and agents keep for a session.
	Variable = change.Variable
	// VariableError reports why a variable cannot be stored.
	VariableError = change.VariableError
	// Transcript is a session as data; package memory/transcript reads and writes it.
	Transcript = change.Transcript
	// MessageError reports that a message cannot be found, edited or deleted.
	MessageError = history.MessageError
	// TranscriptError reports why a transcript cannot be imported.
	TranscriptError = change.TranscriptError
	// Budget is the room of one call of a model.
	Budget = budget.Budget
	// BudgetError reports that the newest round does not fit into a context window.
	BudgetError = budget.Error
	// EmptyWindowError reports that the newest message does not fit into the window.
	EmptyWindowError = budget.EmptyWindowError
	// TurnSizeError reports that the window has no room for what a turn needs.
	TurnSizeError = budget.TurnSizeError
	// MissingEntriesError reports that a store has lost messages.
	MissingEntriesError = history.MissingEntriesError
)

// MinShortResult is the smallest Compaction.ToolResults: the note alone needs some 30 tokens.
const MinShortResult = window.MinShortResult

// NewInProcess returns a store that keeps everything in RAM and loses it when
// the process ends.
func NewInProcess() Store { return inprocess.New() }

// Tokens returns the size of a message by OpenAI's published rule: 3, the role, the
// content, and the name plus 1 if there is one. Each tool call adds its name, its
// arguments and 12, the result of a tool 9, for what templates write around them.
func Tokens(c Counter, m chat.Message) int { return window.Tokens(c, m) }
