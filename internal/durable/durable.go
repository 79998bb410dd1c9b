// Package durable describes engines that run the rows of flows on other computers: a run is a
// workflow, a chunk of rows an activity, and workers on any number of computers run the chunks.
// The results are those of a run in one process, in the same order. The engine itself is a part
// of the program; see package distribution/temporal.
package durable

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// The defaults of Config.
const (
	DefaultAddress   = "127.0.0.1:7233"
	DefaultNamespace = "default"
	DefaultChunk     = 100
	DefaultHeartbeat = 10 * time.Second
)

// Config is what runs and workers need to find each other.
type Config struct {
	Address   string        // host and port of Temporal
	Namespace string        // of Temporal
	Blobs     string        // the folder, or the address of a bucket, in which rows and results are exchanged
	Chunk     int           // the most rows of a chunk
	Heartbeat time.Duration // how long a worker may be silent before another one gets its chunk

	Buckets remotefs.Buckets // the services that Blobs may name; set by the engine

	TLS        *TLS            // nil for a connection without TLS
	APIKey     string          // sent with each request; empty for none
	APIKeyFile string          // is read for each request, so that the key can be replaced; empty for APIKey
	NameOwners bool            // search attributes and memos have the ids of sessions and users, not their hashes
	Keys       []encrypted.Key // encrypt what Temporal and the blobs have: the first one encrypts, all decrypt; none for no encryption
}

// TLS describes a connection with TLS. The files are in PEM format.
type TLS struct {
	CA         string // file with the certificates of authorities; empty for those of the system
	Cert       string // file with the certificate of the client; empty for none
	Key        string // file with its private key
	ServerName string // expected in the certificate of the server; empty for the host of the address
}

// WorkerConfig describes a worker.
type WorkerConfig struct {
	Config
	Parallel    int               // how many chunks are run at once
	Requests    int               // how many requests of servers are run at once
	Metrics     telemetry.Metrics // of the program: the engine adds its own if they can register others; nil for none
	Drain       time.Duration     // how long calls of models and tools may last when the worker stops
	Approved    []string          // ids of tools whose calls need no further approval
	ClientTools []string          // ids of client tools that the App has handlers for; others are requests of the run
	Log         io.Writer         // for warnings and errors of Temporal's client; nil for none

	// InWaves returns another App of the document, whose models make their calls in the batches of a run.
	InWaves func(context.Context, *waves.Run) (*runtime.App, error)

	// Ready is called when the worker polls, with a check whether Temporal answers. It may be nil.
	Ready func(queues []string, check func(context.Context) error)
}

// The engines that run rows.
const (
	Local    = "local"    // this process
	Temporal = "temporal" // workers
)

// Run describes a run of an engine.
type Run struct {
	ID       string        `json:"id"`                 // of the workflow; for the local engine the path of its output or its file
	Engine   string        `json:"engine"`             // Local or Temporal
	Flow     string        `json:"flow"`               // the flow's id
	Status   string        `json:"status"`             // see docs/durable.md
	Started  time.Time     `json:"started,omitzero"`   // when it began
	Closed   time.Time     `json:"closed,omitzero"`    // when it ended; zero if it runs
	Rows     int64         `json:"rows,omitempty"`     // the finished rows, as far as they are known
	Failed   int64         `json:"failed,omitempty"`   // those that failed
	Repeated int64         `json:"repeated,omitempty"` // calls of models and tools that were made again, because a worker was killed
	Reason   string        `json:"reason,omitempty"`   // why it did not complete, or is not known better
	Input    string        `json:"input,omitempty"`    // the file with the rows
	Sessions []string      `json:"sessions,omitempty"` // of the rows, unless they are many
	Users    []string      `json:"users,omitempty"`    // to whom the sessions belong, unless they are many
	Queue    string        `json:"queue,omitempty"`    // the task queue of the document
	Document string        `json:"document,omitempty"` // the application's id
	Waiting  []Request     `json:"waiting,omitempty"`  // what rows wait for, the oldest first
	Batches  *waves.Status `json:"batches,omitempty"`  // of a run whose calls are made in batches of providers
}

// WaitingStatus is the status of a run that waits for answers.
const WaitingStatus = "waiting"

// UnservedStatus is the status of a run on Temporal that has not ended, and whose flow no worker has.
const UnservedStatus = "unserved"

// Filter selects runs.
type Filter struct {
	Flow    string // the flow's id; empty for all
	Session string // a session of the run; empty for all
	User    string // a user of the run; empty for all
}

// Selects reports whether a run is one of the filter.
func (f Filter) Selects(r *Run) bool {
	return (f.Flow == "" || f.Flow == r.Flow) && (f.Session == "" || slices.Contains(r.Sessions, f.Session)) && (f.User == "" || slices.Contains(r.Users, f.User))
}

// Engine runs rows on workers. It is safe for concurrent use.
type Engine interface {
	// Batch returns what runs the rows of files.
	Batch(cfg Config) batch.Engine
	// Serve connects what runs the requests of a server.
	Serve(ctx context.Context, cfg Config, log *slog.Logger) (Server, error)
	// Work runs chunks of an application until the context ends.
	Work(ctx context.Context, app *runtime.App, cfg WorkerConfig) error
	// List returns the runs that the filter selects, the newest first.
	List(ctx context.Context, cfg Config, filter Filter) ([]Run, error)
	// Show returns a run with what it has finished.
	Show(ctx context.Context, cfg Config, id string) (*Run, error)
	// Answer answers requests of a run. Either all are taken, or none.
	Answer(ctx context.Context, cfg Config, id string, answers []Answer) error
	// Cancel ends a run, which can be resumed.
	Cancel(ctx context.Context, cfg Config, id string) error
	// Retry continues a run that has ended, with the rows that are not finished.
	// app is another version of its document, to which it moves, also if it has not ended; nil for the same document.
	Retry(ctx context.Context, cfg Config, id string, app *spec.Application) error
}

// Server runs the requests of a server on workers.
type Server interface {
	runs.Engine
	// Check logs whether a worker has the document, and which flows workers cannot run.
	Check(ctx context.Context, app *runtime.App)
	// Close ends the connection.
	Close()
}

type key struct{}

// With returns a context of a program with an engine; nil for none.
func With(ctx context.Context, e Engine) context.Context { return context.WithValue(ctx, key{}, e) }

// Has reports whether the program of a context has an engine.
func Has(ctx context.Context) bool {
	e, _ := ctx.Value(key{}).(Engine)
	return e != nil
}

// From returns the engine of the program of a context. The error, for a program without one, is a
// *parts.MissingError.
func From(ctx context.Context) (Engine, error) {
	if e, _ := ctx.Value(key{}).(Engine); e != nil {
		return e, nil
	}
	return nil, &parts.MissingError{Kind: parts.Engine, Name: Temporal}
}

// RequestKind is what a row waits for.
type RequestKind string

// The kinds of requests.
const (
	Approval   RequestKind = "approval"    // whether a tool may be called
	ClientTool RequestKind = "client_tool" // the result of a client tool
)

// Request is what a row of a run waits for.
type Request struct {
	Number    int             `json:"number"` // unique in the run, counted from 1
	Kind      RequestKind     `json:"kind"`
	Row       int64           `json:"row"`
	Session   string          `json:"session,omitempty"`
	Step      string          `json:"step"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Schema    json.RawMessage `json:"schema,omitempty"`   // of the result of a client tool
	InBlobs   bool            `json:"in_blobs,omitempty"` // the arguments are in the blobs of the run, which were not read
	Key       string          `json:"-"`                  // the same when the row is repeated
}

// Answer answers a Request.
type Answer struct {
	Number   int             `json:"number"` // of the request
	Approved bool            `json:"approved,omitempty"`
	Reason   string          `json:"reason,omitempty"` // of a rejection, for the model
	Result   json.RawMessage `json:"result,omitempty"` // of a client tool
	Error    string          `json:"error,omitempty"`  // why a client tool failed, for the model
	By       string          `json:"by,omitempty"`     // who has answered, if it is a caller of a server
}
