package mcpserver

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// memoryPrefix is what the addresses of sessions begin with.
const memoryPrefix = "qtype://memory/"

// sessionTemplate is the template of the addresses of sessions.
const sessionTemplate = memoryPrefix + "{memory}/{session}"

// The limits of resources.
const (
	maxListed  = 200  // sessions of a memory in the list, the newest
	maxHistory = 1000 // messages of the history of a session, the newest
)

// addResources adds a template for the sessions of the memories. The list of sessions
// depends on the caller, so visible makes it.
func (a *application) addResources(s *sdk.Server) {
	if len(a.app.Spec().Memories) == 0 {
		return
	}
	s.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "memory", Title: "Session of a memory", URITemplate: sessionTemplate, MIMEType: "application/json",
		Description: "What a memory has of a session of the caller: the window, which the next call of a model receives, and the history.",
	}, func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return a.readSession(ctx, req.Params.URI)
	})
}

// address returns the address of a session.
func address(memory, session string) string {
	return memoryPrefix + url.PathEscape(memory) + "/" + url.PathEscape(session)
}

// sessions lists the caller's sessions of all memories, the newest first.
func (a *application) sessions(ctx context.Context) ([]*sdk.Resource, error) {
	all := []*sdk.Resource{}
	for _, m := range a.app.Spec().Memories {
		infos, err := a.app.Memory(m.ID).Sessions(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, listSessions(m.ID, access.PrincipalOf(ctx), infos)...)
	}
	return all, nil
}

// listSessions returns the sessions of a caller as resources.
func listSessions(memoryID string, caller access.Principal, infos []memory.SessionInfo) []*sdk.Resource {
	var all []*sdk.Resource
	for _, s := range newest(caller, infos) {
		all = append(all, &sdk.Resource{
			URI: address(memoryID, s.id), Name: memoryID + "/" + s.id, MIMEType: "application/json",
			Description: fmt.Sprintf("%d messages, %d in the window", s.info.Messages, s.info.InWindow),
			Annotations: &sdk.Annotations{LastModified: s.info.LastSaid.UTC().Format(time.RFC3339)},
		})
	}
	return all
}

// clientSession is a session under the id that its caller uses.
type clientSession struct {
	id   string
	info memory.SessionInfo
}

// newest returns the newest sessions of a caller, at most maxListed.
func newest(caller access.Principal, infos []memory.SessionInfo) []clientSession {
	var own []clientSession
	for _, info := range infos {
		if id, ok := caller.ClientSession(info.Session); ok {
			own = append(own, clientSession{id, info})
		}
	}
	slices.SortStableFunc(own, func(a, b clientSession) int {
		return cmp.Or(b.info.LastSaid.Compare(a.info.LastSaid), cmp.Compare(a.id, b.id))
	})
	return own[:min(len(own), maxListed)]
}

// sessionContent is a session of a memory as a resource.
type sessionContent struct {
	Memory  string         `json:"memory"`
	Session string         `json:"session"`
	Policy  string         `json:"policy"`
	Window  sessionWindow  `json:"window"`
	History []sessionEntry `json:"history"`
	Omitted int64          `json:"omitted,omitempty"` // older messages that are not in history
}

// sessionWindow is what the next call of a model receives.
type sessionWindow struct {
	Used     int            `json:"used"`
	Limit    int            `json:"limit,omitempty"`
	Unit     string         `json:"unit"`
	Tokens   int            `json:"tokens"`
	Messages []chat.Message `json:"messages"`
}

// sessionEntry is a message of the history.
type sessionEntry struct {
	Seq     int64        `json:"seq"`
	Turn    int64        `json:"turn"`
	Status  string       `json:"status"`
	Tokens  int          `json:"tokens"`
	Time    time.Time    `json:"time"`
	Message chat.Message `json:"message"`
}

// readSession returns a session of the caller as JSON.
func (a *application) readSession(ctx context.Context, uri string) (*sdk.ReadResourceResult, error) {
	memoryID, session, ok := parseAddress(uri)
	m := a.app.Memory(memoryID)
	if !ok || m == nil {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	stored := access.PrincipalOf(ctx).StoredSession(session)
	head, err := m.Head(ctx, stored)
	if err != nil {
		return nil, err
	}
	if head.Version == 0 {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	content := &sessionContent{Memory: memoryID, Session: session, Policy: string(m.Policy()), History: []sessionEntry{}}
	if err := content.read(ctx, m, stored); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(raw)}}}, nil
}

// parseAddress returns the parts of the address of a session.
func parseAddress(uri string) (memory, session string, ok bool) {
	rest, ok := strings.CutPrefix(uri, memoryPrefix)
	if !ok {
		return "", "", false
	}
	one, two, ok := strings.Cut(rest, "/")
	memory, err := url.PathUnescape(one)
	session, err2 := url.PathUnescape(two)
	return memory, session, ok && err == nil && err2 == nil
}

// read reads window and history of a session.
func (c *sessionContent) read(ctx context.Context, m *memory.Memory, session string) error {
	w, err := m.Window(ctx, session)
	if err != nil {
		return err
	}
	c.Window = sessionWindow{Used: w.Used, Limit: w.Limit, Unit: string(w.Unit), Tokens: w.Tokens, Messages: w.Messages()}
	for e, err := range m.History(ctx, session) {
		if err != nil {
			return err
		}
		c.History = append(c.History, sessionEntry{e.Seq, e.Turn, e.Status.String(), e.Tokens, e.Time, e.Message})
		if len(c.History) >= 2*maxHistory {
			c.trim()
		}
	}
	c.trim()
	return nil
}

// trim removes the oldest messages of the history.
func (c *sessionContent) trim() {
	if n := len(c.History) - maxHistory; n > 0 {
		c.History, c.Omitted = slices.Delete(c.History, 0, n), c.Omitted+int64(n)
	}
}

// decodeMedia replaces the base64 texts of media in a value of a type by their bytes.
// A data: URL is accepted, too; no other address is: the server fetches nothing.
func decodeMedia(t spec.Type, v any) (any, error) {
	switch x := v.(type) {
	case string:
		if t.Elem == nil && t.Custom == nil && t.IsMedia() {
			return decodeBase64(x)
		}
	case []any:
		if t.Elem != nil {
			return decodeItems(*t.Elem, x)
		}
	case *value.Record:
		if t.Custom != nil {
			return decodeFields(t.Custom, x)
		}
	}
	return v, nil
}

func decodeItems(t spec.Type, items []any) (any, error) {
	all := make([]any, len(items))
	for i, item := range items {
		var err error
		if all[i], err = decodeMedia(t, item); err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return all, nil
}

func decodeFields(t *spec.CustomType, r *value.Record) (any, error) {
	for _, p := range t.Properties {
		x, ok := r.Get(p.Name)
		if !ok {
			continue
		}
		decoded, err := decodeMedia(p.Type, x)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		r = r.With(p.Name, decoded)
	}
	return r, nil
}

func decodeBase64(text string) (any, error) {
	if strings.HasPrefix(text, "data:") {
		_, data, ok := strings.Cut(text, ";base64,")
		if !ok {
			return nil, errors.New("the data: URL is not in base64")
		}
		text = data
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("a file is passed as base64 text")
	}
	return data, nil
}

// encodeMedia replaces media in a value by base64 texts, and a message by its text.
func encodeMedia(t spec.Type, v any) any {
	switch x := v.(type) {
	case []byte:
		return base64.StdEncoding.EncodeToString(x)
	case chat.Message:
		if t.Is("ChatMessage") {
			return x.Text()
		}
	case []any:
		if t.Elem == nil || areMessages(*t.Elem) {
			return x
		}
		all := make([]any, len(x))
		for i, item := range x {
			all[i] = encodeMedia(*t.Elem, item)
		}
		return all
	case *value.Record:
		if t.Custom != nil {
			return encodeFields(t.Custom, x)
		}
	}
	return v
}

// encodeFields does the same for a record, and leaves out fields that are null, which
// the schema of an optional field does not allow.
func encodeFields(t *spec.CustomType, r *value.Record) *value.Record {
	var fields []value.Field
	for name, x := range r.All() {
		if x == nil {
			continue
		}
		i := slices.IndexFunc(t.Properties, func(p spec.Property) bool { return p.Name == name })
		if i >= 0 && !areMessages(t.Properties[i].Type) {
			x = encodeMedia(t.Properties[i].Type, x)
		}
		fields = append(fields, value.Field{Name: name, Value: x})
	}
	return value.NewRecord(r.Type(), fields...)
}

// areMessages reports whether values of a type are messages: only a message that is a
// whole argument or output is a text, others are objects.
func areMessages(t spec.Type) bool { return t.Is("ChatMessage") }

// mediaOf returns the images and sounds of an output as content.
func mediaOf(t spec.Type, v any) []sdk.Content {
	switch x := v.(type) {
	case []byte:
		return mediaContent(t.Name, "", x)
	case chat.Message:
		var all []sdk.Content
		for _, b := range x.Blocks {
			if b.Media() && len(b.Data) > 0 {
				all = append(all, mediaContent(b.Type, b.MimeType, b.Data)...)
			}
		}
		return all
	}
	return nil
}

// mediaContent returns bytes as the content that the protocol has for a type; nothing
// for types without one, which the structured result has.
func mediaContent(kind, mimeType string, data []byte) []sdk.Content {
	if mimeType == "" {
		mimeType = http.DetectContentType(data)
	}
	switch kind {
	case "image":
		return []sdk.Content{&sdk.ImageContent{Data: data, MIMEType: mimeType}}
	case "audio":
		return []sdk.Content{&sdk.AudioContent{Data: data, MIMEType: mimeType}}
	}
	return nil
}
