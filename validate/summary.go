package validate

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// Summary counts the declarations of a document, without those of its references.
type Summary struct {
	Flows     int // flows
	Steps     int // items in the step lists of flows
	Memories  int // chat memories
	Models    int // chat and embedding models
	Tools     int // tools
	Indexes   int // vector and document indexes
	Types     int // custom types
	Auths     int // credentials
	Variables int // variables of a document that is a list; those of flows are not counted
}

// Summarise counts the declarations of doc.
func Summarise(doc *spec.Document) Summary {
	if doc == nil {
		return Summary{}
	}
	s := Summary{Models: len(doc.Models), Tools: len(doc.Tools), Types: len(doc.Types),
		Auths: len(doc.Auths), Variables: len(doc.Variables)}
	app := doc.Application
	if app == nil {
		return s
	}
	s.Flows, s.Memories, s.Indexes = len(app.Flows), len(app.Memories), len(app.Indexes)
	s.Models += len(app.Models)
	s.Tools += len(app.Tools)
	s.Types += len(app.Types)
	s.Auths += len(app.Auths)
	for _, f := range app.Flows {
		if f != nil {
			s.Steps += len(f.Steps)
		}
	}
	return s
}

// String returns a text such as "2 flows, 7 steps, 1 memory, 1 model", without zero counts.
func (s Summary) String() string {
	var parts []string
	for _, c := range []struct {
		n        int
		one, all string
	}{
		{s.Flows, "flow", "flows"}, {s.Steps, "step", "steps"}, {s.Memories, "memory", "memories"},
		{s.Models, "model", "models"}, {s.Tools, "tool", "tools"}, {s.Indexes, "index", "indexes"},
		{s.Types, "type", "types"}, {s.Auths, "auth", "auths"}, {s.Variables, "variable", "variables"},
	} {
		switch {
		case c.n == 1:
			parts = append(parts, "1 "+c.one)
		case c.n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.all))
		}
	}
	if len(parts) == 0 {
		return "nothing declared"
	}
	return strings.Join(parts, ", ")
}
