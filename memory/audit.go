package memory

import (
	"context"
	"time"
)

// AuditRecord describes an access to stored conversations other than a turn.
type AuditRecord struct {
	Time      time.Time      `json:"time"`                 // in UTC
	Operation AuditOperation `json:"operation"`            // what is done
	Memory    string         `json:"memory"`               // the memory's id in its store
	Session   string         `json:"session"`              // the id of the session in the store
	User      string         `json:"user,omitempty"`       // to whom the session belongs
	Actor     string         `json:"actor,omitempty"`      // who does it, as WithActor names them
	Reason    string         `json:"reason,omitempty"`     // delete: why, unless the actor does it: expired, or unused
	Messages  int64          `json:"messages,omitempty"`   // delete: of the history, if known
	FromTurn  int64          `json:"from_turn,omitempty"`  // rewind: the first turn that leaves
	Message   string         `json:"message,omitempty"`    // edit: the id or position of the message
	ToSession string         `json:"to_session,omitempty"` // copy: the new session
}

// AuditOperation is the kind of an access.
type AuditOperation string

// The operations.
const (
	AuditRead   AuditOperation = "read"   // the window or the history is read outside of a turn
	AuditDelete AuditOperation = "delete" // a session is deleted
	AuditRewind AuditOperation = "rewind" // turns are undone
	AuditEdit   AuditOperation = "edit"   // a message is edited or deleted
	AuditCopy   AuditOperation = "copy"   // a session is copied to another one
)

// Auditor records an access before it happens. After an error the access is refused.
// It is safe for concurrent use.
type Auditor func(AuditRecord) error

type actorKey struct{}

// WithActor returns a context with the name of who accesses conversations, for audit logs.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// Actor returns the name that WithActor set, empty for none.
func Actor(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string)
	return actor
}
