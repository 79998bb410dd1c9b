package steps

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// toolbox is the tools of an Agent. Those of a server may change between two calls of the
// model. It is safe for concurrent use.
type toolbox struct {
	made      []declaredTool // in order
	transfers []model.Tool   // of handoffs, which are not called
	memory    *memory.Memory // counts tokens; nil for none

	mu        sync.Mutex
	revisions []int // of the sets that may change, in order
	set       *toolset
}

// declaredTool is a tool, or a set of tools, with its declaration.
type declaredTool struct {
	tool.Tool
	base *spec.ToolBase
}

// toolset is the tools that a model gets. It does not change.
type toolset struct {
	offers []model.Tool         // as the model sees them
	tools  map[string]tool.Tool // by the names that the model uses
	cost   func() int           // the tokens that their descriptions take
}

// newToolbox returns the tools of an Agent.
func (e *Env) newToolbox(declared []spec.Ref[spec.Tool], transfers []model.Tool, m *memory.Memory) (*toolbox, error) {
	b := &toolbox{memory: m, transfers: transfers}
	for _, ref := range declared {
		if ref.To == nil || e.Tool == nil {
			return nil, fmt.Errorf("a tool is not linked")
		}
		t, err := e.Tool(ref.To)
		if err != nil {
			return nil, err
		}
		b.made = append(b.made, declaredTool{t, ref.To.Common()})
	}
	b.revisions = b.revised()
	var err error
	b.set, err = b.read(context.Background()) // a server has its own time limit
	return b, err
}

// current returns the tools as they were when the model was last called.
func (b *toolbox) current() *toolset {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.set
}

// refreshed returns the tools as they are now. If a server does not answer, or if its
// tools have become unusable, they stay as they were, and a call reports what is wrong.
func (b *toolbox) refreshed(ctx context.Context) *toolset {
	now := b.revised()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(now, b.revisions) {
		set, err := b.read(ctx)
		if err == nil {
			b.set = set
		}
		if ctx.Err() == nil { // a server that does not answer is asked again after its next change
			b.revisions = now
		}
	}
	return b.set
}

// revised returns the revisions of the sets that may change.
func (b *toolbox) revised() []int {
	var all []int
	for _, t := range b.made {
		if set, ok := t.Tool.(tool.ChangingSet); ok {
			all = append(all, set.Revision())
		}
	}
	return all
}

// read lists the tools.
func (b *toolbox) read(ctx context.Context) (*toolset, error) {
	s := &toolset{tools: map[string]tool.Tool{}}
	s.cost = sync.OnceValue(func() int { return toolTokens(b.memory, s.offers) })
	for _, t := range b.made {
		if err := s.addTools(ctx, t); err != nil {
			return nil, err
		}
	}
	for _, t := range b.transfers {
		if other, ok := s.tools[t.Name]; ok {
			return nil, fmt.Errorf("tool %s has the name %q, which is that of a handoff", other.Info().ID, t.Name)
		}
		s.offers = append(s.offers, t)
	}
	return s, nil
}

// names lists the names of the tools.
func (s *toolset) names() []string {
	names := make([]string, 0, len(s.offers))
	for _, o := range s.offers {
		names = append(names, o.Name)
	}
	return names
}

// toolTokens estimates how many tokens of a model's context window the tools take:
// each is sent as its name, its description and its schema. The constants are what
// chat templates write around all tools and around each one, as measured in decision 49.
func toolTokens(m *memory.Memory, tools []model.Tool) int {
	const preamble, frame = 74, 30
	if len(tools) == 0 {
		return 0
	}
	n := preamble
	for _, t := range tools {
		n += frame + m.Count(t.Name) + m.Count(t.Description) + m.Count(string(t.Parameters))
	}
	return n
}

// addTools offers a tool, or all tools of a set, to the model.
func (s *toolset) addTools(ctx context.Context, t declaredTool) error {
	set, many := t.Tool.(tool.Set)
	if !many {
		return s.add(t)
	}
	tools, err := set.Tools(ctx)
	for _, one := range tools {
		if err == nil {
			err = s.add(declaredTool{one, t.base})
		}
	}
	return err
}

// add offers one tool to the model.
func (s *toolset) add(t declaredTool) error {
	info := t.Info()
	name := WireName(info.Name)
	if other, ok := s.tools[name]; ok {
		advice := ""
		if set := cmp.Or(info.Set, other.Info().Set); set != "" && info.Set != other.Info().Set {
			advice = fmt.Sprintf("; set the key prefix of %s", set)
		}
		return fmt.Errorf("tools %s and %s have the same name %q%s", other.Info().ID, info.ID, name, advice)
	}
	s.tools[name] = t.Tool
	offer := model.Tool{Name: name, Description: info.Description, Parameters: info.Parameters, Hosted: info.Hosted, Settings: info.Settings,
		Deferred: t.base.Deferred, Strict: t.base.Strict, Passages: info.Passages}
	if g := t.base.Grammar; g != nil {
		offer.Grammar = &model.Grammar{Syntax: g.Syntax, Definition: g.Definition}
	}
	s.offers = append(s.offers, offer)
	return nil
}

// WireName returns a tool's name with the characters that providers accept: a-z, A-Z,
// 0-9, _ and -, at most 64.
func WireName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), 64)]
}
