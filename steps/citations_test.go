package steps

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/tool"
)

// A passage that the provider found cited and the text cites by its number is one source, with the number of the set.
func TestCite_SourcesOfTheProvider(t *testing.T) {
	var set citation.Set
	for _, id := range []string{"c1", "c2", "c3"} {
		set.Add(citation.Source{ID: id, Title: id + ".md", Text: "All of " + id})
	}
	own := func(id, url string) chat.Block {
		b := citation.Source{Number: 1, ID: id, URL: url, Title: "[2] " + id}.Block()
		b.Item = &chat.Item{Field: "citation"}
		return b
	}
	answer := chat.Message{Role: chat.Assistant, Blocks: []chat.Block{{Type: "text", Text: "Cut [2], kept [3]."}, own("c2", ""), own("https://a.example", "https://a.example")}}
	var got []citation.Source
	for _, b := range (&llmStep{}).cite(&set, answer).Blocks {
		if b.IsCitation() {
			got = append(got, sourceOfBlock(b))
		}
	}
	want := []citation.Source{{Number: 2, ID: "c2", Title: "c2.md", Text: "All of c2"}, {Number: 1, ID: "https://a.example", URL: "https://a.example", Title: "[2] https://a.example"},
		{Number: 3, ID: "c3", Title: "c3.md", Text: "All of c3"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// set is a server of tools.
type set struct{ tool.Tool }

func (set) Tools(context.Context) ([]tool.Tool, error) { return []tool.Tool{offered{}}, nil }

type offered struct{ tool.Tool }

func (offered) Info() tool.Info { return tool.Info{ID: "shop/find", Set: "shop", Name: "find"} }

// Keys of a declaration hold for all tools of a server.
func TestToolbox_KeysOfSets(t *testing.T) {
	b := &toolbox{made: []declaredTool{{set{}, &spec.ToolBase{ID: "shop", Deferred: true}}}}
	all, err := b.read(t.Context())
	if err != nil || len(all.offers) != 1 || !all.offers[0].Deferred {
		t.Errorf("offers %+v, %v", all, err)
	}
}
