package storage

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Location names the place where a store keeps its data, without credentials.
// Its methods create the errors of that store.
type Location string

// Error returns an error of a kind. err is the cause, or nil.
func (l Location) Error(kind memory.ErrorKind, message string, err error) error {
	return &memory.StoreError{Location: string(l), Problem: kind, Message: message, Err: err, Temporary: kind == memory.Locked}
}

// Unavailable returns an error for a store that cannot be used.
func (l Location) Unavailable(message string) error {
	return l.Error(memory.Unavailable, message, nil)
}

// Closed returns the error for a use after Close.
func (l Location) Closed() error { return l.Unavailable("the store is closed") }

// Corrupt returns the error for a record that cannot be read.
func (l Location) Corrupt(err error) error {
	return l.Error(memory.Corrupt, "cannot read a record: "+textfmt.OneLine(err.Error()), err)
}

// Decode reads the JSON text of a record into to, a pointer.
func (l Location) Decode(text string, to any) error {
	if err := json.Unmarshal([]byte(text), to); err != nil {
		return l.Corrupt(err)
	}
	return nil
}

// DecodeMessage reads the JSON text of a message. It does not parse the text twice, as
// encoding/json does to find its end.
func (l Location) DecodeMessage(text string, to *chat.Message) error {
	if err := to.UnmarshalJSON([]byte(text)); err != nil {
		return l.Corrupt(err)
	}
	return nil
}

// IsFinal reports whether err needs no explanation: it is nil, one of the
// package memory that callers compare with, or a *memory.StoreError.
func IsFinal(err error) bool {
	if err == nil || errors.Is(err, memory.ErrConflict) || errors.Is(err, memory.ErrDuplicateMessage) {
		return true
	}
	var explained *memory.StoreError
	return errors.As(err, &explained)
}

// Explain converts an error of a server, the network or a driver to a
// *memory.StoreError with a message of one line. ctx comes from WithTimeout:
// where it has ended, that is the reason. Otherwise diagnose returns it.
func (l Location) Explain(ctx context.Context, err error, diagnose func(error) (memory.ErrorKind, string)) error {
	if IsFinal(err) {
		return err
	}
	timeout, canceled := cause(ctx)
	switch {
	case timeout != nil:
		return &memory.StoreError{Location: string(l), Problem: memory.Unavailable, Message: timeout.Error(), Err: err, Temporary: true}
	case canceled != nil:
		return canceled
	}
	kind, message := diagnose(err)
	return l.Error(kind, message, err)
}
