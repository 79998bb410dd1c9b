package anthropic

import (
	"cmp"
	"encoding/json"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/spec/chat"
)

// location is a citation: a web page, a passage of a document, or a result of a search.
type location struct {
	URL    string `json:"url"`
	Source string `json:"source"`         // of a search result
	Title  string `json:"title"`          // of a web page or a search result
	Name   string `json:"document_title"` // of a document
	File   string `json:"file_id"`
	Page   int    `json:"start_page_number"`
	Text   string `json:"cited_text"`
}

// citationBlocks returns the sources that texts cite, each once, in the order of their first citation.
func citationBlocks(cited []json.RawMessage) []chat.Block {
	var blocks []chat.Block
	seen := map[location]bool{}
	for _, raw := range cited {
		var at location
		if json.Unmarshal(raw, &at) != nil {
			continue
		}
		same := at
		same.Text = ""
		if seen[same] {
			continue
		}
		seen[same] = true
		c := citation.Source{Number: len(blocks) + 1, URL: at.URL, Page: at.Page, Text: at.Text,
			ID: cmp.Or(at.URL, at.Source, at.File, at.Name), Title: cmp.Or(at.Title, at.Name, at.URL, at.Source)}
		b := c.Block()
		b.Item = &chat.Item{Field: citationField}
		blocks = append(blocks, b)
	}
	return blocks
}
