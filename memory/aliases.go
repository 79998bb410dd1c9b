package memory

import (
	"github.com/qtype-dev/qtype/memory/inprocess"
	"github.com/qtype-dev/qtype/memory/store"
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

// NewInProcess returns a store that keeps everything in RAM and loses it when
// the process ends.
func NewInProcess() Store { return inprocess.New() }
