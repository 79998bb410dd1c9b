// Package sessions is the REST interface of conversations: to list, read, rename,
// fork, rewind, export, import and delete them. A session belongs to the principal
// that opened it; for others it does not exist.
//
// Messages are in the memories of the application. A session has one small record
// in the state store of the server, with title, flow and time of creation, which is
// written when the session begins and when it is renamed.
//
//	sessions.go   Options, Service and its routes
//	request.go    parameters and bodies of requests, and errors
//	record.go     the record of a session, and the list of the newest ones
//	session.go    a session as JSON; list, read, rename, delete
//	branch.go     fork and rewind
//	revise.go     editing and deleting a message
//	transfer.go   export and import
//	messages.go   the history, as messages of the AI SDK
//	search.go     messages that fit a text
//	parts.go      the parts of a message
//	context.go    what the next call of a model sends
package sessions

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

// App is the part of runtime.App that this package needs.
type App interface {
	Spec() *spec.Application
	Memory(id string) *memory.Memory
	Searcher(id string) *search.Searcher // of a memory
	SessionsOf(session string) []string  // a session and those that tools have in it

	// Effects returns the calls of tools in a turn and later ones that rewinding does not undo.
	Effects(ctx context.Context, m *memory.Memory, session string, turn int64) ([]runtime.Effect, error)
}

// Options configures a Service.
type Options struct {
	App   func() App               // the application that is served now; required
	State func() store.Application // has the records of sessions; required

	Running func(ctx context.Context, session string) (run string, busy bool, err error) // whether a stored session is in use, and the id of the run that uses it, if it has one; nil: it is not
	OnFork  func(ctx context.Context, from, to string) error                             // copies it; nil: nothing
	Test    TestMaker                                                                    // nil: no tests are made
	Allowed func(flow *spec.Flow, caller access.Principal) bool                          // whether a caller may use a flow; nil: access.Allowed
	Wait    time.Duration                                                                // how long a change waits for an active turn; 0: 10 seconds
	Import  int64                                                                        // the most bytes of an imported transcript; 0: 32 MiB
	Log     *slog.Logger                                                                 // failures of the server; nil: slog.Default
	Now     func() time.Time                                                             // the clock; nil: time.Now
}

// TestMaker makes a test of a stored session of a memory, up to a turn, 0 for the last one: the text of a test file. An error is about the conversation.
type TestMaker func(ctx context.Context, app App, memory, session string, turn int64) (string, error)

const (
	defaultWait   = 10 * time.Second
	defaultImport = 32 << 20
)

// Service serves /sessions and what is below it. It is safe for concurrent use.
type Service struct {
	opts Options
	mux  *http.ServeMux
}

// New returns a Service.
func New(o Options) *Service {
	if o.Allowed == nil {
		o.Allowed = access.Allowed
	}
	if o.Wait == 0 {
		o.Wait = defaultWait
	}
	if o.Import == 0 {
		o.Import = defaultImport
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Service{opts: o, mux: http.NewServeMux()}
	s.routes()
	return s
}

// endpoint answers one kind of request. An error that is not a *problem.Problem is
// a failure of the server.
type endpoint func(w http.ResponseWriter, r *http.Request) error

func (s *Service) routes() {
	one := map[string]endpoint{http.MethodGet: s.get, http.MethodPatch: s.rename, http.MethodDelete: s.remove}
	imported := namedSession("import", one) // a session may have this id
	imported[http.MethodPost] = s.importSession
	searched := namedSession("messages", one)
	searched[http.MethodGet] = s.searchAll
	for path, methods := range map[string]map[string]endpoint{
		"/sessions":                         {http.MethodGet: s.list},
		"/sessions/import":                  imported,
		"/sessions/messages":                searched,
		"/sessions/{id}":                    one,
		"/sessions/{id}/messages":           {http.MethodGet: s.messages},
		"/sessions/{id}/messages/{message}": {http.MethodPatch: s.edit, http.MethodDelete: s.removeMessage},
		"/sessions/{id}/context":            {http.MethodGet: s.context},
		"/sessions/{id}/fork":               {http.MethodPost: s.fork},
		"/sessions/{id}/rewind":             {http.MethodPost: s.rewind},
		"/sessions/{id}/export":             {http.MethodGet: s.export},
		"/sessions/{id}/test":               {http.MethodGet: s.test},
	} {
		s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, methods) })
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, problem.New(http.StatusNotFound, "not_found", "there is no such page"))
	})
}

// namedSession returns the endpoints of a session whose id a path has as a name.
func namedSession(id string, endpoints map[string]endpoint) map[string]endpoint {
	named := map[string]endpoint{}
	for method, serve := range endpoints {
		named[method] = func(w http.ResponseWriter, r *http.Request) error {
			r.SetPathValue("id", id)
			return serve(w, r)
		}
	}
	return named
}

// ServeHTTP answers a request whose context has the caller (access.WithPrincipal).
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Microsecond) }

const (
	listedFor     = 10 * time.Minute // after which a session that is used moves to the front of the list
	maxTitle      = 80               // characters of a title that is made of a message
	maxNewTitle   = 200              // characters of a title that a client sets
	maxSearchable = 400              // bytes of the first message that a search looks at
)

// record is what the server keeps of a session.
type record struct {
	appstate.Session
	version int64 // of the stored record, 0 if there is none
}

// Record notes that a run of a flow begins in a stored session of the caller of ctx;
// firstMessage makes the title of a new session. It reads the record each time, because another
// process with the same store may have deleted it.
func (s *Service) Record(ctx context.Context, flow, storedSession, firstMessage string) error {
	rec, err := s.readRecord(ctx, storedSession)
	if err == nil && s.mayHaveExpired(&rec) {
		var one *session
		if one, err = s.load(ctx, "", storedSession); err == nil {
			rec = one.record
		}
	}
	switch {
	case err != nil:
	case rec.version == 0:
		err = s.create(ctx, storedSession, newRecord(flow, firstMessage))
	case s.now().Sub(rec.Listed) > listedFor:
		err = s.putFirst(ctx, storedSession, rec)
	}
	return err
}

func newRecord(flow, firstMessage string) record {
	return record{Session: appstate.Session{Title: titleOf(firstMessage), Flow: flow, First: start(oneLine(firstMessage), maxSearchable)}}
}

// readRecord returns the record of a session, one with version 0 if there is none.
func (s *Service) readRecord(ctx context.Context, session string) (rec record, err error) {
	rec.Session, rec.version, err = appstate.ReadSession(ctx, s.opts.State(), session)
	return rec, err
}

// create writes the record of a new session.
func (s *Service) create(ctx context.Context, session string, rec record) error {
	if rec.Created.IsZero() {
		rec.Created = s.now()
	}
	return s.putFirst(ctx, session, rec)
}

// putFirst writes a record and makes its session the first one of the list. If another
// process was faster, its record stays, and the new place in the list is removed.
func (s *Service) putFirst(ctx context.Context, session string, rec record) error {
	p := access.PrincipalOf(ctx)
	id, ok := p.ClientSession(session)
	if !ok {
		return errors.New("the session belongs to another caller")
	}
	list := s.opts.State().Records(appstate.Newest)
	before := appstate.NewestID(p.SessionPrefix(), id, rec.Listed)
	rec.Listed = s.now()
	place := appstate.NewestID(p.SessionPrefix(), id, rec.Listed)
	err := list.Write(ctx, place, store.RecordChange{Next: store.NextVersion(0), Stored: rec.Listed})
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	err = s.writeRecord(ctx, session, rec)
	switch {
	case errors.Is(err, store.ErrConflict):
		return list.Delete(ctx, place)
	case err != nil || rec.version == 0:
		return err
	}
	return list.Delete(ctx, before)
}

// writeRecord writes a record if the store has its version; otherwise it returns
// store.ErrConflict.
func (s *Service) writeRecord(ctx context.Context, session string, rec record) error {
	raw, err := json.Marshal(rec.Session)
	if err != nil {
		return err
	}
	return s.opts.State().Records(appstate.Sessions).Write(ctx, session, store.RecordChange{Version: rec.version, Next: store.NextVersion(rec.version),
		Stored: rec.Created, Values: map[string][]byte{appstate.SessionValue: raw}})
}

// titleOf returns the start of a message as a title.
func titleOf(message string) string {
	text := []rune(oneLine(message))
	switch {
	case len(text) == 0:
		return "New session"
	case len(text) <= maxTitle:
		return string(text)
	}
	return strings.TrimRightFunc(string(text[:maxTitle-1]), unicode.IsSpace) + "…"
}

// oneLine returns a text with single blanks in the place of white space and control characters.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
}

// start returns at most n bytes of a text, without a part of a character.
func start(text string, n int) string {
	return strings.ToValidUTF8(text[:min(len(text), n)], "")
}

// part is a part of a message of the AI SDK: a text, reasoning, a file, a source or a tool call.
type part struct {
	Type       string          `json:"type"` // text, reasoning, file, source-url, source-document, or tool- and the tool's name
	Text       *string         `json:"text,omitempty"`
	MediaType  string          `json:"mediaType,omitempty"`
	URL        string          `json:"url,omitempty"` // file: a data URL, or the URL that the message names
	ToolCallID string          `json:"toolCallId,omitempty"`
	State      string          `json:"state,omitempty"` // text: done; tool: input-available, output-available, output-error or output-denied
	Input      json.RawMessage `json:"input,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	ErrorText  string          `json:"errorText,omitempty"`
	Approval   *approval       `json:"approval,omitempty"` // output-denied
	SourceID   string          `json:"sourceId,omitempty"`
	Title      string          `json:"title,omitempty"`
	Filename   string          `json:"filename,omitempty"`
	Metadata   json.RawMessage `json:"providerMetadata,omitempty"` // source: the whole citation; commentary: that it is
}

// approval is the decision about a call that a person rejected.
type approval struct {
	ID       string `json:"id"`
	Approved bool   `json:"approved"`
	Reason   string `json:"reason,omitempty"`
}

// sourcePart returns the part of a citation.
func sourcePart(b chat.Block) part {
	var c struct {
		SourceID  string `json:"source_id"`
		URL       string `json:"url"`
		Title     string `json:"title"`
		MediaType string `json:"media_type"`
		Filename  string `json:"filename"`
	}
	p := part{Type: "source-url", URL: b.Text, Title: b.Text}
	if json.Unmarshal([]byte(b.Text), &c) == nil {
		p.URL, p.Title, p.SourceID = c.URL, c.Title, c.SourceID
		p.Metadata = json.RawMessage(`{"qtype":` + b.Text + `}`)
	}
	if p.SourceID == "" {
		p.SourceID = p.Title
	}
	if b.Type == "citation_document" {
		p.Type, p.URL, p.MediaType, p.Filename = "source-document", "", c.MediaType, c.Filename
		if p.MediaType == "" {
			p.MediaType = "text/plain"
		}
	}
	return p
}

// errorPrefix begins the result of a tool call that failed.
const errorPrefix = "error: "

// partsOf returns the parts of a message, without results of its tool calls.
func partsOf(m *chat.Message) []part {
	parts := make([]part, 0, len(m.Blocks))
	for _, b := range m.Blocks {
		if p, ok := partOf(b); ok {
			parts = append(parts, p)
		}
	}
	return parts
}

// partOf returns the part of a block; ok is false for an empty text.
func partOf(b chat.Block) (p part, ok bool) {
	switch {
	case b.Call != nil:
		return part{Type: "tool-" + b.Call.Name, ToolCallID: b.Call.ID, State: "input-available", Input: schema.JSONOrText(b.Call.Arguments)}, true
	case b.Type == chat.ReasoningType:
		return part{Type: "reasoning", Text: &b.Text, State: "done"}, b.Text != ""
	case b.Type == chat.CommentaryType:
		metadata, _ := json.Marshal(schema.Commentary()) // texts always encode
		return part{Type: "reasoning", Text: &b.Text, State: "done", Metadata: metadata}, b.Text != ""
	case b.Type == chat.ItemType:
		return part{}, false
	case b.Media():
		media := b.MimeType
		if media == "" {
			media = mediaTypes()[b.Type]
		}
		if media == "" {
			media = http.DetectContentType(b.Data)
		}
		media, _, _ = strings.Cut(media, ";")
		return part{Type: "file", MediaType: media, URL: "data:" + media + ";base64," + base64.StdEncoding.EncodeToString(b.Data)}, true
	case b.Type != "text" && mediaTypes()[b.Type] != "":
		return part{Type: "file", MediaType: mediaTypes()[b.Type], URL: b.Text}, true
	}
	if b.IsCitation() {
		return sourcePart(b), true
	}
	return part{Type: "text", Text: &b.Text, State: "done"}, b.Text != ""
}

// mediaTypes returns the media types of blocks that have none.
func mediaTypes() map[string]string {
	return map[string]string{"image": "image/*", "audio": "audio/*", "video": "video/*", "file": "application/octet-stream", "bytes": "application/octet-stream"}
}

// addResult adds a tool result to the part of its call, or as another part if the call
// is not there.
func addResult(parts []part, m *chat.Message) []part {
	for i := range parts {
		if parts[i].ToolCallID == m.ToolCallID && parts[i].State == "input-available" {
			parts[i].setResult(m.Text())
			return parts
		}
	}
	alone := part{Type: "tool-" + m.Name, ToolCallID: m.ToolCallID, Input: json.RawMessage("{}")}
	alone.setResult(m.Text())
	return append(parts, alone)
}

func (p *part) setResult(text string) {
	if reason, rejected := steps.Rejection(strings.TrimPrefix(p.Type, "tool-"), text); rejected {
		p.State, p.Approval = "output-denied", &approval{ID: p.ToolCallID, Reason: reason}
		return
	}
	if reason, failed := strings.CutPrefix(text, errorPrefix); failed {
		p.State, p.ErrorText = "output-error", reason
		return
	}
	p.State, p.Output = "output-available", schema.JSONOrText(text)
}
