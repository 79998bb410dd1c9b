package input

import (
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Report collects the diagnostics of one conversion.
type Report struct {
	// Muted drops diagnostics. The converter translates expressions several
	// times and reports only in the last pass.
	Muted bool

	list   diag.List
	seen   map[string]bool      // reported before: the value of an alias is read more than once
	places map[source.Span]bool // places that were reported as lost; see Rest
}

// NewReport returns a Report that begins with the given diagnostics.
func NewReport(list diag.List) *Report {
	return &Report{list: list, seen: map[string]bool{}, places: map[source.Span]bool{}}
}

// Add adds a diagnostic unless it is muted or was added before.
func (r *Report) Add(d diag.Diagnostic) {
	key := d.Span.String() + "\x00" + d.Message
	if r.Muted || r.seen[key] {
		return
	}
	r.seen[key] = true
	r.places[d.Span] = r.places[d.Span] || d.Code != Rules()[Assumed].Code
	r.list.Add(d)
}

// IsReported reports whether a place was reported as lost.
func (r *Report) IsReported(at source.Span) bool { return r.places[at] }

// HasErrors reports whether an error was added.
func (r *Report) HasErrors() bool { return r.list.Errors() > 0 }

// Malformed reports a value that the other system would reject.
func (r *Report) Malformed(n *Node, format string, args ...any) {
	r.Add(Malformed.At(n.Mark(), format, args...))
}

// Unsupported reports something without which the document behaves differently.
func (r *Report) Unsupported(n *Node, format string, args ...any) {
	r.Add(Unsupported.At(n.Mark(), format, args...))
}

// Ignored reports something that is left out without effect on the answers.
func (r *Report) Ignored(at source.Span, format string, args ...any) {
	r.Add(Ignored.At(at, format, args...))
}

// Assumed reports a value that the file leaves open.
func (r *Report) Assumed(n *Node, format string, args ...any) {
	r.Add(Assumed.At(n.Mark(), format, args...))
}

// IsAddress reports whether a text is the address of a model's server, and adds a
// diagnostic if it is not.
func (r *Report) IsAddress(at source.Span, text string) bool {
	if spec.IsHTTPAddress(text) {
		return true
	}
	r.Add(Assumed.At(at, "%q is not the address of a server: it must start with http:// or https://; using the provider's server", text))
	return false
}

// Diagnostics returns the diagnostics in file order.
func (r *Report) Diagnostics() diag.List {
	r.list.Sort()
	return r.list
}

// Text returns the string value of a key. It returns "" if the key is absent, and
// reports other values.
func (r *Report) Text(n *Node, key string) string {
	v := n.Get(key)
	switch {
	case v == nil:
		return ""
	case v.Kind != Text && v.Kind != Int && v.Kind != Float:
		r.Malformed(v, "%s must be a string, not %s", key, v.Describe())
		return ""
	}
	return v.Text
}

// RequiredText is like Text but reports an absent or empty value; owner is its
// object in messages.
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

// PositiveInt returns the value of a key that is an integer above 0, also in
// quotes. It returns 0 if the key is absent, and reports other values.
func (r *Report) PositiveInt(n *Node, key string) int {
	v := n.Get(key)
	if v == nil {
		return 0
	}
	i, err := strconv.Atoi(strings.TrimSuffix(strings.ReplaceAll(v.Text, "_", ""), ".0"))
	if v.Kind != Int && v.Kind != Float && v.Kind != Text || err != nil || i <= 0 {
		r.Malformed(v, "%s must be a positive integer, not %s", key, v.Describe())
		return 0
	}
	if v.Kind == Text {
		r.Assumed(v, "%s must be an integer, not the string %s; using %d", key, v.Describe(), i)
	}
	return i
}

// Bool returns the value of a key that is true or false, and reports other values.
func (r *Report) Bool(n *Node, key string) bool {
	v := n.Get(key)
	if v != nil && v.Kind != Bool {
		r.Malformed(v, "%s must be true or false, not %s", key, v.Describe())
		return false
	}
	return v != nil && strings.EqualFold(v.Text, "true")
}

// List returns the elements of the list at a key, nil if it is absent, and reports
// other values.
func (r *Report) List(n *Node, key string) []*Node {
	v := n.Get(key)
	switch {
	case v == nil:
		return nil
	case v.Kind != List:
		r.Malformed(v, "%s must be a list, not %s", key, v.Describe())
		return nil
	}
	return v.Elements()
}

// Map returns the mapping at a key, nil if it is absent, and reports other values.
func (r *Report) Map(n *Node, key string) *Node {
	v := n.Get(key)
	if v == nil {
		return nil
	}
	return r.AsMap(v, key)
}

// AsMap returns v if it is a mapping; else it reports that and returns nil.
func (r *Report) AsMap(v *Node, what string) *Node {
	if v.Kind != Map {
		r.Malformed(v, "%s must be a mapping, not %s", what, v.Describe())
		return nil
	}
	return v
}

// CheckKeys reports keys of a mapping that are not among names, or only in another
// spelling.
func (r *Report) CheckKeys(n *Node, owner string, names ...string) {
	NormalizeKeys(n, names...)
	for _, p := range n.Pairs {
		if p.Spelling != "" {
			r.Add(UnknownKey.At(p.KeySpan, "%s: key %q read as %s", owner, p.Spelling, p.Key))
			continue
		}
		found := false
		for _, name := range names {
			found = found || p.Key == name
		}
		if !found {
			r.Add(UnknownKey.At(p.KeySpan, "%s: unknown key %q ignored", owner, p.Key).WithNearest(p.Key, names))
		}
	}
}
