package input

import (
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Report collects the diagnostics of one conversion.
type Report struct {
	// Muted drops diagnostics. The converter translates expressions several
	// times and reports only in the last pass.
	Muted bool

	list diag.List
	seen map[string]bool // reported before: the value of an alias is read more than once
}

// NewReport returns a Report that begins with the given diagnostics.
func NewReport(list diag.List) *Report {
	return &Report{list: list, seen: map[string]bool{}}
}

// Add adds a diagnostic unless it is muted or was added before.
func (r *Report) Add(d diag.Diagnostic) {
	key := d.Span.String() + "\x00" + d.Message
	if r.Muted || r.seen[key] {
		return
	}
	r.seen[key] = true
	r.list.Add(d)
}

// HasErrors reports whether an error was added.
func (r *Report) HasErrors() bool { return r.list.Errors() > 0 }

// Malformed tells of a value that is not what the other system takes.
func (r *Report) Malformed(n *Node, format string, args ...any) {
	r.Add(MalformedAt(n.Mark(), format, args...))
}

// Unsupported tells of something that changes what the document does.
func (r *Report) Unsupported(n *Node, format string, args ...any) {
	r.Add(UnsupportedAt(n.Mark(), format, args...))
}

// Ignored tells of something without effect on the answers.
func (r *Report) Ignored(at source.Span, format string, args ...any) {
	r.Add(ignoredAt(at, format, args...))
}

// Assumed tells of something that the file left open.
func (r *Report) Assumed(n *Node, format string, args ...any) {
	r.Add(AssumedAt(n.Mark(), format, args...))
}

func (r *Report) Diagnostics() diag.List {
	r.list.Sort()
	return r.list
}

// texts reads a key that holds a text; empty where it is absent or something else,
// which is told.
func (r *Report) Text(n *Node, key string) string {
	v := n.Get(key)
	switch {
	case v == nil:
		return ""
	case v.Kind != Text && v.Kind != Int && v.Kind != Float:
		r.Malformed(v, "%s is a text, not %s", key, v.Describe())
		return ""
	}
	return v.Text
}

// RequiredText is textOf for a key that must be there.
func (r *Report) RequiredText(n *Node, key, owner string) string {
	if n.Get(key) == nil {
		r.Malformed(n, "%s has no %q", owner, key)
		return ""
	}
	s := r.Text(n, key)
	if v := n.Get(key); v.Kind == Text && strings.TrimSpace(s) == "" {
		r.Malformed(v, "%s is empty", key)
	}
	return s
}

// PositiveInt reads a key that holds a whole number above 0; 0 where it is absent
// or wrong, which is told. A number in quotes is taken, and told.
func (r *Report) PositiveInt(n *Node, key string) int {
	v := n.Get(key)
	if v == nil {
		return 0
	}
	i, err := strconv.Atoi(strings.TrimSuffix(strings.ReplaceAll(v.Text, "_", ""), ".0"))
	if v.Kind != Int && v.Kind != Float && v.Kind != Text || err != nil || i <= 0 {
		r.Malformed(v, "%s is a whole number above 0, not %s", key, v.Describe())
		return 0
	}
	if v.Kind == Text {
		r.Assumed(v, "%s is a whole number, not the text %s; the number %d is taken", key, v.Describe(), i)
	}
	return i
}

// Bool reads a key that holds true or false.
func (r *Report) Bool(n *Node, key string) bool {
	v := n.Get(key)
	if v != nil && v.Kind != Bool {
		r.Malformed(v, "%s is true or false, not %s", key, v.Describe())
		return false
	}
	return v != nil && strings.EqualFold(v.Text, "true")
}

// List reads a key that holds a list; nil where it is absent or something else, which is told.
func (r *Report) List(n *Node, key string) []*Node {
	v := n.Get(key)
	switch {
	case v == nil:
		return nil
	case v.Kind != List:
		r.Malformed(v, "%s is a list, not %s", key, v.Describe())
		return nil
	}
	return v.Items
}

// Map reads a key that holds a mapping; nil where it is absent or something else, which is told.
func (r *Report) Map(n *Node, key string) *Node {
	v := n.Get(key)
	if v == nil {
		return nil
	}
	return r.AsMap(v, key)
}

// AsMap answers a mapping, and tells where it is none.
func (r *Report) AsMap(v *Node, what string) *Node {
	if v.Kind != Map {
		r.Malformed(v, "%s is a mapping, not %s", what, v.Describe())
		return nil
	}
	return v
}

// CheckKeys tells of keys of a mapping that are not among the names, or are among
// them in another spelling only.
func (r *Report) CheckKeys(n *Node, owner string, names ...string) {
	NormalizeKeys(n, names...)
	for _, p := range n.Pairs {
		if p.Spelling != "" {
			r.Add(UnknownAt(p.KeySpan, "%s: the key %q is taken for %s", owner, p.Spelling, p.Key))
			continue
		}
		found := false
		for _, name := range names {
			found = found || p.Key == name
		}
		if !found {
			r.Add(UnknownAt(p.KeySpan, "%s: the key %q is not known and is left out", owner, p.Key).WithNearest(p.Key, names))
		}
	}
}
