package openai

import (
	"slices"

	"github.com/qtype-dev/qtype/spec/chat"
)

// annotation is a source of an answer: in chat completions within an object, in the Responses API
// without one.
type annotation struct {
	Type  string `json:"type"`
	URL   string `json:"url"`
	Title string `json:"title"`
	Cited *struct {
		URL   string `json:"url"`
		Title string `json:"title"`
	} `json:"url_citation"`
}

// cite adds the source to the blocks of those that are cited, once. Other annotations than addresses
// have no block.
func cite(blocks []chat.Block, c annotation) []chat.Block {
	if c.Cited != nil {
		c.URL, c.Title = c.Cited.URL, c.Cited.Title
	}
	if c.Type != "url_citation" || c.URL == "" {
		return blocks
	}
	b := chat.Block{Type: "citation_url", Text: string(encode(map[string]string{"url": c.URL, "title": c.Title}))}
	if slices.ContainsFunc(blocks, func(other chat.Block) bool { return other.Text == b.Text }) {
		return blocks
	}
	return append(blocks, b)
}
