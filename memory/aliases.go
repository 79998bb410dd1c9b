package memory

import (
	"github.com/qtype-dev/qtype/memory/inprocess"
	"github.com/qtype-dev/qtype/memory/internal/budget"
	"github.com/qtype-dev/qtype/memory/internal/change"
	"github.com/qtype-dev/qtype/memory/internal/history"
	"github.com/qtype-dev/qtype/memory/internal/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The types of package memory/store that programs with a Memory name most often.
type (
	Store       = store.Store       // keeps the sessions of memories
	Key         = store.Key         // names a session
	Head        = store.Head        // the current version, state and values of a session
	Entry       = store.Entry       // a message of a history
	Event       = store.Event       // a change of a session's window or values
	SessionHead = store.SessionHead // a session with its head
	StoreError  = store.StoreError  // a failure of a store
)

// What a Config and the results of a Memory consist of.
type (
	Window         = window.Window         // what the next call of a model receives
	Counter        = window.Counter        // counts the tokens of a text
	MessageCounter = window.MessageCounter // counts whole messages by a rule other than that of Tokens
	Limits         = window.Limits         // the limits of a policy by their keys in a document
	Compaction     = window.Compaction     // what is shortened before messages leave
	ReadOptions    = window.ReadOptions    // the limits of a round_window for one read
	BalanceError   = window.BalanceError   // reports tool calls and results that do not belong together
	Variable       = change.Variable       // a named value that steps and agents keep for a session
	VariableError  = change.VariableError  // reports why a variable cannot be stored
	Transcript     = change.Transcript     // a session as data; package memory/transcript reads and writes it
	MessageError   = history.MessageError  // reports that a message cannot be found, edited or deleted

	TranscriptError     = change.TranscriptError      // reports why a transcript cannot be imported
	Budget              = budget.Budget               // the room of one call of a model
	BudgetError         = budget.BudgetError          // reports that the newest round does not fit into a context window
	EmptyWindowError    = budget.EmptyWindowError     // reports that the newest message does not fit into the window
	TurnSizeError       = budget.TurnSizeError        // reports that the window has no room for what a turn needs
	MissingEntriesError = history.MissingEntriesError // reports that a store has lost messages
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
