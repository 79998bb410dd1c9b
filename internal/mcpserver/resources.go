package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
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
