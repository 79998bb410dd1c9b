// Package citation numbers the passages that an answer may cite, as in [2], and finds the
// cited ones.
package citation

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// maxExcerpt is the number of characters of a passage that clients get.
const maxExcerpt = 400

// Source is a passage of a document.
type Source struct {
	Number    int    `json:"number"`               // what the answer cites, from 1
	ID        string `json:"source_id"`            // of the chunk or document
	Title     string `json:"title"`                // where the passage is, for people: a file with lines or page, or a title
	URL       string `json:"url,omitempty"`        // address of the document; empty for a file
	Filename  string `json:"filename,omitempty"`   // name of the file; relative to the working directory if it is below it
	MediaType string `json:"media_type,omitempty"` // of the document
	Heading   string `json:"heading,omitempty"`    // headings above the passage, as in "Memory > Windows"
	Page      int    `json:"page,omitempty"`       // from 1; 0 for a document without pages
	LineStart int    `json:"line_start,omitempty"` // from 1; 0 if it is not known
	LineEnd   int    `json:"line_end,omitempty"`   // the last line
	Text      string `json:"text,omitempty"`       // the passage
}

// New returns the source of a passage whose document has this metadata. id identifies the
// passage, document what it is part of.
func New(id, document, text string, metadata *value.Record) Source {
	get := func(names ...string) string {
		if metadata == nil {
			return ""
		}
		for _, name := range names {
			if v, ok := metadata.Get(name); ok && v != nil {
				return strings.TrimSpace(value.Text(v))
			}
		}
		return ""
	}
	s := Source{ID: id, Text: text, MediaType: get("file_type", "mime_type"), Heading: get("heading_path"),
		Page: number(get("page", "page_label")), LineStart: number(get("line_start")), LineEnd: number(get("line_end"))}
	if address := get("url", "uri"); isWebAddress(address) {
		s.URL = address
	} else {
		s.Filename = fileName(get("file_path"), get("file_name"))
	}
	s.Title = s.title(get("title"), document)
	return s
}

// number returns a positive whole number, 0 for other texts.
func number(text string) int {
	var n int
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil || n < 0 {
		return 0
	}
	return n
}

func isWebAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// fileName returns the path of a file for clients, which must not see folders outside of
// the working directory: the path relative to it, else the name alone.
func fileName(path, name string) string {
	if filepath.IsAbs(path) {
		folder, err := os.Getwd()
		if err != nil {
			return name
		}
		if path, err = filepath.Rel(folder, path); err != nil {
			return name
		}
	}
	if path == "" || !filepath.IsLocal(path) || strings.Contains(path, "://") {
		return name
	}
	return filepath.ToSlash(path)
}

// title returns where the passage is.
func (s *Source) title(given, document string) string {
	name := s.Filename
	if name == "" {
		name = given
	}
	for _, other := range []string{s.URL, document, s.ID} {
		if name == "" {
			name = other
		}
	}
	switch {
	case s.Page > 0:
		return fmt.Sprintf("%s, page %d", name, s.Page)
	case s.LineStart > 0 && s.LineEnd > s.LineStart:
		return fmt.Sprintf("%s:%d-%d", name, s.LineStart, s.LineEnd)
	case s.LineStart > 0:
		return fmt.Sprintf("%s:%d", name, s.LineStart)
	}
	return name
}

// Excerpt returns the source with the begin of its text.
func (s Source) Excerpt() Source {
	text := []rune(strings.Join(strings.Fields(s.Text), " "))
	if len(text) > maxExcerpt {
		text = append(text[:maxExcerpt-1:maxExcerpt-1], '…')
	}
	s.Text = string(text)
	return s
}

// Block returns the source as a part of the answer's message.
func (s Source) Block() chat.Block {
	typ := "citation_document"
	if s.URL != "" {
		typ = "citation_url"
	}
	raw, err := json.Marshal(s)
	if err != nil {
		raw = []byte("{}") // texts and numbers always encode
	}
	return chat.Block{Type: typ, Text: string(raw)}
}

// FromResult returns the source of a search result: a SearchResult or RAGSearchResult, or a
// RAGChunk or RAGDocument by itself.
func FromResult(r *value.Record) Source {
	text := func(r *value.Record, name string) string {
		v, _ := r.Get(name)
		return value.Text(v)
	}
	content, _ := r.Get("content")
	inner, isRecord := content.(*value.Record)
	id := text(r, "doc_id")
	if r.Type() == "RAGChunk" || r.Type() == "RAGDocument" {
		inner, isRecord = r, true
	}
	if !isRecord {
		return New(id, id, value.Text(content), nil)
	}
	for _, name := range []string{"chunk_id", "file_id"} {
		if own := text(inner, name); own != "" {
			id = own
		}
	}
	document := text(inner, "document_id")
	metadata, _ := inner.Get("metadata")
	fields, ok := metadata.(*value.Record)
	if !ok {
		fields = inner // a document of a full-text index has its metadata among its fields
	}
	passage, found := inner.Get("content")
	if !found {
		return New(id, document, string(value.JSON(inner)), fields)
	}
	return New(id, document, value.Text(passage), fields)
}
