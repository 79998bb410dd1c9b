package storage

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Location names the place where a store keeps its data, without credentials.
// Its methods create the errors of that store.
type Location string

// Error returns an error of a kind. err is the cause, or nil.
func (l Location) Error(kind store.ErrorKind, message string, err error) error {
	return &store.StoreError{Location: string(l), Problem: kind, Message: message, Err: err, Temporary: kind == store.Locked}
}

// Unavailable returns an error for a store that cannot be used.
func (l Location) Unavailable(message string) error {
	return l.Error(store.Unavailable, message, nil)
}

// Closed returns the error for a use after Close.
func (l Location) Closed() error { return l.Unavailable("the store is closed") }

// Corrupt returns the error for a record that cannot be read.
func (l Location) Corrupt(err error) error {
	return l.Error(store.Corrupt, "cannot read a record: "+textfmt.OneLine(err.Error()), err)
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
// package memory that callers compare with, or a *store.StoreError.
func IsFinal(err error) bool {
	if err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrDuplicateMessage) {
		return true
	}
	var explained *store.StoreError
	return errors.As(err, &explained)
}

// Explain converts an error of a server, the network or a driver to a
// *store.StoreError with a message of one line. ctx comes from WithTimeout:
// where it has ended, that is the reason. Otherwise diagnose returns it.
func (l Location) Explain(ctx context.Context, err error, diagnose func(error) (store.ErrorKind, string)) error {
	if IsFinal(err) {
		return err
	}
	timeout, canceled := cause(ctx)
	switch {
	case timeout != nil:
		return &store.StoreError{Location: string(l), Problem: store.Unavailable, Message: timeout.Error(), Err: err, Temporary: true}
	case canceled != nil:
		return canceled
	}
	kind, message := diagnose(err)
	return l.Error(kind, message, err)
}
