package xflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/jq"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// memoryUse is a memory with its first declaration.
type memoryUse struct {
	id      string
	n       *input.Node
	setting string
}

// memory returns the id of a state's memory, "" if it has none.
func (w *workflow) memory(s *state) string {
	n := w.Map(s.n, "memory")
	if n == nil {
		if s.n.Get("memory") == nil && w.cycles[s] > 0 {
			w.Assumed(s.n, "state %s has no memory: xFlow remembers the messages of a run, here each iteration starts without them", s.name)
		}
		return ""
	}
	return w.declareMemory(n, s.name)
}

// declareMemory declares a memory, or returns the one with the same memoryId.
func (w *workflow) declareMemory(n *input.Node, owner string) string {
	w.CheckKeys(n, "memory", "memoryId", "memoryType", "maxMessages", "maxTokens")
	name := w.Text(n, "memoryId")
	if n.Get("memoryId") == nil {
		w.Assumed(n, "memory has no \"memoryId\"; using the name %s", owner)
	}
	key, note := w.sessionOf(n, name)
	b := new(document.Block).Set("id", "")
	if note != "" {
		b.Note("%s", note)
	}
	setting := w.window(n, b)
	if w.parts.memories == nil {
		w.parts.memories = map[string]*memoryUse{}
	}
	if key == "" {
		key = owner
	}
	if had := w.parts.memories[key]; had != nil {
		if had.setting != setting {
			w.Add(input.Malformed.At(n.Mark(), "memory %s is declared with %s here and with %s elsewhere; using the first", key, setting, had.setting).WithRelated(had.n.Mark(), "first declared here"))
		}
		return had.id
	}
	id := w.ids.New(key, "memory")
	b.Entries[0].Value = id
	w.parts.memories[key] = &memoryUse{id, n, setting}
	w.app.Memories = append(w.app.Memories, b)
	return id
}

// sessionOf returns the name of a memory by its memoryId. The memoryId of xFlow
// identifies the conversation; in a document the session of the caller does.
func (w *workflow) sessionOf(n *input.Node, name string) (key, note string) {
	tpl := jq.ParseTemplate(name)
	if name == "" {
		return "", ""
	}
	if !tpl.HasExpressions() {
		return name, "One conversation for each session: qtype run --session " + document.OneLine(name)
	}
	for _, p := range tpl.Parts {
		if p.IsExpr {
			word := p.Text[strings.LastIndexAny(p.Text, ".$ ")+1:]
			w.Assumed(n.Get("memoryId"), "the conversation is identified by an expression; use qtype run --session with the value of %s", document.OneLine(p.Text))
			return cmp.Or(document.Slug(word), "memory"), "One conversation for each session: qtype run --session with the value of " + document.OneLine(p.Text)
		}
	}
	return name, ""
}

// window sets the policy and its limit, which it returns as text.
func (w *workflow) window(n *input.Node, b *document.Block) (setting string) {
	kind := w.Text(n, "memoryType")
	if kind == "" {
		kind = "message_window"
	}
	policies := []string{"message_window", "token_window"}
	for _, policy := range policies {
		if kind != policy && input.NormalizeName(kind) == input.NormalizeName(policy) {
			w.Assumed(n.Get("memoryType"), "memoryType %q read as %s", kind, policy)
			kind = policy
		}
	}
	if !slices.Contains(policies, kind) {
		w.Add(input.Malformed.At(n.Get("memoryType").Mark(), "memoryType must be message_window or token_window, not %q; using message_window", kind).WithNearest(kind, policies))
		kind = "message_window"
	}
	key, other, name, fallback := "maxMessages", "maxTokens", "max_messages", 10
	if kind == "token_window" {
		key, other, name, fallback = "maxTokens", "maxMessages", "max_tokens", 1000
	}
	limit := w.PositiveInt(n, key)
	if limit == 0 {
		limit = fallback
		if n.Get(key) == nil {
			w.Assumed(n, "memory has no %q; using %d", key, fallback)
		}
	}
	if n.Get(other) != nil {
		w.PositiveInt(n, other)
		w.Ignored(n.KeySpan(other), "%s ignored: it has no effect on a %s", other, kind)
	}
	b.Set("policy", kind).Set(name, limit)
	return fmt.Sprintf("%s %d", kind, limit)
}

// bareMemory converts memory blocks without a workflow: an application with a chat
// flow for each memory.
func (w *workflow) bareMemory(roots ...*input.Node) *document.App {
	w.app, w.ids = &document.App{ID: "memory_app"}, document.NewIDs("memory_app")
	var ids []string
	for _, root := range roots {
		w.CheckKeys(root, "the file", "memory")
		if n := w.Map(root, "memory"); n != nil {
			if id := w.declareMemory(n, "memory"); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	document.AddChatFlows(w.app, w.ids, ids)
	return w.app
}
