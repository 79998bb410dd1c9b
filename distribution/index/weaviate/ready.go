package weaviate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/distribution/index/remote"
)

// The waits for a collection or property that was just created, which together are six
// seconds. The server lists it before its storage exists and before queries know its name.
const (
	readyWait    = 25 * time.Millisecond
	maxReadyWait = 4 * time.Second
)

// notReadyError is the error of a call that names a collection or property that the server
// does not know yet, or not any more.
type notReadyError struct{ message string }

func (e *notReadyError) Error() string { return "Weaviate: " + e.message }

// isNotReady reports whether a message of the server is one of a missing collection or property,
// or of a server that prepares its first collection.
func isNotReady(message string) bool {
	texts := []string{"Cannot query field ", "non-existing index for ", "could not find index for class ", "no graphql provider present"}
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(message, text) })
}

// IsTemporary reports whether an answer means that the collection is not ready.
func IsTemporary(e *remote.StatusError) bool { return isNotReady(e.Message) }

// serverError returns the error for a message of the server.
func serverError(message string) error {
	if isNotReady(message) {
		return &notReadyError{message}
	}
	return errors.New("Weaviate: " + message)
}

// whenReady repeats a call while its error is a notReadyError, for a limited time.
func whenReady(ctx context.Context, call func() error) error {
	for wait := readyWait; ; wait *= 2 {
		err := call()
		if _, notReady := errors.AsType[*notReadyError](err); !notReady || wait > maxReadyWait {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}
