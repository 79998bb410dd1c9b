package anthropic

import (
	"cmp"
	"encoding/json"

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

// citation is the content of a block that is a citation of the language.
type citation struct {
	Number int    `json:"number"`
	ID     string `json:"source_id"`
	Title  string `json:"title"`
	URL    string `json:"url,omitempty"`
	Page   int    `json:"page,omitempty"`
	Text   string `json:"text,omitempty"`
}

// citationBlocks returns the sources that texts cite, each once, in the order of their first citation.
func citationBlocks(citations []json.RawMessage) []chat.Block {
	var blocks []chat.Block
	seen := map[location]bool{}
	for _, raw := range citations {
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
		c := citation{Number: len(blocks) + 1, URL: at.URL, Page: at.Page, Text: at.Text,
			ID: cmp.Or(at.URL, at.Source, at.File, at.Name), Title: cmp.Or(at.Title, at.Name, at.URL, at.Source)}
		kind := "citation_document"
		if at.URL != "" {
			kind = "citation_url"
		}
		content, _ := json.Marshal(c) // texts and numbers always encode
		blocks = append(blocks, chat.Block{Type: kind, Text: string(content), Item: &chat.Item{Field: citationField}})
	}
	return blocks
}
