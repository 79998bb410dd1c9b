package tool

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/redact"
)

// maxAuditedArguments is the size in bytes of the largest arguments that a record has; of
// larger ones it has the digest only.
const maxAuditedArguments = 4096

// AuditRecord describes one event of a call of a tool. The records of one call have the same Call.
type AuditRecord struct {
	Time        time.Time       `json:"time"`                  // in UTC
	Event       AuditEvent      `json:"event"`                 // what happens
	Call        string          `json:"call"`                  // identifies the call
	Application string          `json:"application,omitempty"` // the id of the application
	Flow        string          `json:"flow,omitempty"`        // the id of the flow whose step calls
	Step        string          `json:"step,omitempty"`        // the id of the step
	Session     string          `json:"session,omitempty"`     // the session of the row
	Row         int64           `json:"row,omitempty"`         // the number of the row, counted from 1
	Principal   string          `json:"principal,omitempty"`   // for whom the tool is called
	Tool        string          `json:"tool"`                  // the id of the tool
	ModelCall   string          `json:"model_call,omitempty"`  // the model's id of the call
	Arguments   json.RawMessage `json:"arguments,omitempty"`   // without secrets; absent if they are large
	Digest      string          `json:"arguments_digest"`      // SHA-256 of the arguments without secrets
	Decision    AuditDecision   `json:"decision,omitempty"`    // approval: the decision
	Reason      string          `json:"reason,omitempty"`      // approval: the reason of a rejection
	Decider     string          `json:"decider,omitempty"`     // approval: who has decided, if it is known
	Status      AuditStatus     `json:"status,omitempty"`      // result: how the call ended
	Error       string          `json:"error,omitempty"`       // approval, result: the error
}

// AuditEvent is the kind of a record.
type AuditEvent string

// The events of a call.
const (
	AuditApproval AuditEvent = "approval" // it was decided whether the tool may be called
	AuditCall     AuditEvent = "call"     // the tool is about to be called
	AuditResult   AuditEvent = "result"   // the call has ended
)

// AuditDecision is the decision of an approval.
type AuditDecision string

// The decisions.
const (
	AuditApproved  AuditDecision = "approved"
	AuditRejected  AuditDecision = "rejected"
	AuditUndecided AuditDecision = "undecided" // there was no decision: the tool is not called
)

// AuditStatus is the status of the result of a call.
type AuditStatus string

// The statuses.
const (
	AuditOK     AuditStatus = "ok"
	AuditFailed AuditStatus = "error"
)

// Audit records approvals and calls of tools before they have an effect, and results. A nil
// Audit records nothing. It is safe for concurrent use.
type Audit struct {
	Application string                       // the id of the application
	Write       func(AuditRecord) error      // stores a record; after an error the call is refused
	Principal   func(context.Context) string // returns for whom a tool is called
	Redactor    *redact.Redactor             // replaces secrets
}

type auditFlowKey struct{}

// NewCall returns the identity of a call, for Caller.AuditCall; empty if nothing is recorded.
func (a *Audit) NewCall() string {
	if a == nil {
		return ""
	}
	return strings.ToLower(rand.Text())
}

// WithAuditFlow returns a context with the id of the flow whose steps call tools.
func WithAuditFlow(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, auditFlowKey{}, id)
}

// AuditError reports an event that could not be recorded.
type AuditError struct {
	Tool  string     // the tool's id
	Event AuditEvent // the event
	Err   error      // why it could not be recorded
}

// Error reports whether the tool was called.
func (e *AuditError) Error() string {
	if e.Event == AuditResult {
		return fmt.Sprintf("tool %s was called, but the audit log cannot be written: %s", e.Tool, e.Err)
	}
	return fmt.Sprintf("tool %s was not called: the audit log cannot be written: %s", e.Tool, e.Err)
}

// Unwrap returns the cause.
func (e *AuditError) Unwrap() error { return e.Err }

// Decision is a decision about a call.
type Decision struct {
	Approved bool
	Reason   string // of a rejection
	By       string // who has decided, if it is known
	Err      error  // why there is no decision
}

// Approval records a decision about a call.
func (a *Audit) Approval(ctx context.Context, id string, args []byte, d Decision) error {
	if a == nil {
		return nil
	}
	r := a.record(ctx, id, args)
	r.Event, r.Decision, r.Reason, r.Decider = AuditApproval, AuditRejected, a.Redactor.String(d.Reason), d.By
	switch {
	case d.Err != nil:
		r.Decision, r.Error = AuditUndecided, a.Redactor.String(d.Err.Error())
	case d.Approved:
		r.Decision = AuditApproved
	}
	return a.write(r)
}

// Do records a call, makes it, and records its result.
func (a *Audit) Do(ctx context.Context, id string, args []byte, call func() (any, error)) (any, error) {
	if a == nil {
		return call()
	}
	r := a.record(ctx, id, args)
	r.Event = AuditCall
	if err := a.write(r); err != nil {
		return nil, err
	}
	// A panic of the tool is an error of the row: its result is recorded, too.
	ended := false
	end := r
	end.Arguments = nil // the record of the call has them
	defer func() {
		if !ended {
			end.Event, end.Status, end.Error = AuditResult, AuditFailed, "internal error"
			_ = a.write(end) // the panic goes on
		}
	}()
	result, err := call()
	ended = true
	end.Event, end.Status = AuditResult, AuditOK
	if err != nil {
		end.Status, end.Error = AuditFailed, a.Redactor.String(err.Error())
	}
	if failed := a.write(end); failed != nil {
		return nil, errors.Join(err, failed)
	}
	return result, err
}

// record returns a record of a call without its event.
func (a *Audit) record(ctx context.Context, id string, args []byte) AuditRecord {
	caller := CallerOf(ctx)
	shown := a.withoutSecrets(args)
	sum := sha256.Sum256(shown)
	r := AuditRecord{Call: caller.AuditCall, Application: a.Application, Step: caller.Step, Session: a.Redactor.String(caller.Session),
		Row: caller.Row, Tool: id, ModelCall: caller.CallID, Digest: "sha256:" + hex.EncodeToString(sum[:])}
	if r.Call == "" {
		r.Call = a.NewCall()
	}
	r.Flow, _ = ctx.Value(auditFlowKey{}).(string)
	if a.Principal != nil {
		r.Principal = a.Principal(ctx)
	}
	if len(shown) <= maxAuditedArguments {
		r.Arguments = shown
	}
	return r
}

// withoutSecrets returns arguments as JSON with sorted keys, without known secrets and without
// the values of keys such as password. Arguments that are not JSON, as a model may write
// them, are one text.
func (a *Audit) withoutSecrets(args []byte) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		v = string(args)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(a.Redactor.Value(maskNamed(v))) // what was decoded can be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// maskNamed replaces the values of keys that usually have secrets.
func maskNamed(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = maskNamed(v[i])
		}
	case map[string]any:
		for key := range v {
			if redact.NamesSecret(key) {
				v[key] = redact.Mask
			} else {
				v[key] = maskNamed(v[key])
			}
		}
	}
	return v
}

func (a *Audit) write(r AuditRecord) error {
	r.Time = time.Now().UTC()
	if err := a.Write(r); err != nil {
		return &AuditError{Tool: r.Tool, Event: r.Event, Err: err}
	}
	return nil
}
