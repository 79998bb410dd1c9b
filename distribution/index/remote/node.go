package remote

import (
	"crypto/sha1" //nolint:gosec // UUIDv5 is defined by SHA-1
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"

	"github.com/qtype-dev/qtype/index"
)

// The keys that LlamaIndex and this module add to the metadata of a stored chunk.
const (
	KeyContent    = "_node_content" // the chunk as JSON
	KeyType       = "_node_type"
	KeyDocument   = "doc_id"
	KeyDocumentID = "document_id"
	KeySource     = "ref_doc_id"
	KeyHash       = "_qtype_hash" // index.Entry.Hash
	KeyID         = "_qtype_id"   // index.Entry.ID, where the id of the store differs
	NoDocument    = "None"        // LlamaIndex's id of a missing document
)

// sourceRelation is the key of a chunk's document among the relationships of a node.
const sourceRelation = "1"

// node is the form of a chunk in KeyContent: LlamaIndex's TextNode.
type node struct {
	ID                string              `json:"id_"`
	Embedding         []float32           `json:"embedding"`
	Metadata          map[string]any      `json:"metadata"`
	ExcludedEmbed     []string            `json:"excluded_embed_metadata_keys"`
	ExcludedLLM       []string            `json:"excluded_llm_metadata_keys"`
	Relationships     map[string]relation `json:"relationships"`
	MetadataTemplate  string              `json:"metadata_template"`
	MetadataSeparator string              `json:"metadata_separator"`
	Text              string              `json:"text"`
	MimeType          string              `json:"mimetype"`
	Start             *int                `json:"start_char_idx"`
	End               *int                `json:"end_char_idx"`
	TextTemplate      string              `json:"text_template"`
	ClassName         string              `json:"class_name"`
}

// relation is a reference of a node.
type relation struct {
	NodeID    string         `json:"node_id"`
	NodeType  *string        `json:"node_type"`
	Metadata  map[string]any `json:"metadata"`
	Hash      *string        `json:"hash"`
	ClassName string         `json:"class_name"`
}

// Metadata returns the metadata of an entry as LlamaIndex stores it: the keys of the
// entry, the entry as JSON, and the id of its document. The JSON has the text if withText.
func Metadata(e index.Entry, withText bool) (map[string]any, error) {
	n := node{ID: e.ID, Metadata: e.Metadata, ExcludedEmbed: []string{}, ExcludedLLM: []string{}, Relationships: map[string]relation{},
		MetadataTemplate: "{key}: {value}", MetadataSeparator: "\n", MimeType: "text/plain", TextTemplate: "{metadata_str}\n\n{content}", ClassName: "TextNode"}
	if n.Metadata == nil {
		n.Metadata = map[string]any{}
	}
	if withText {
		n.Text = e.Text
	}
	document := NoDocument
	if e.Document != "" {
		document = e.Document
		n.Relationships[sourceRelation] = relation{NodeID: document, Metadata: map[string]any{}, ClassName: "RelatedNodeInfo"}
	}
	content, err := EncodeJSON(n)
	if err != nil {
		return nil, err
	}
	all := make(map[string]any, len(e.Metadata)+6)
	maps.Copy(all, e.Metadata)
	all[KeyContent], all[KeyType] = string(content), "TextNode"
	all[KeyDocument], all[KeyDocumentID], all[KeySource] = document, document, document
	if e.Hash != "" {
		all[KeyHash] = e.Hash
	}
	return all, nil
}

// Entry returns the entry of stored metadata. The text is that of the JSON of the entry if
// it is not stored elsewhere. Entries that other programs wrote have no such JSON.
func Entry(id, text string, stored map[string]any) index.Entry {
	stored = Plain(stored).(map[string]any)
	e := index.Entry{ID: id, Text: text}
	e.Hash, _ = stored[KeyHash].(string)
	content, _ := stored[KeyContent].(string)
	var n node
	if content != "" && DecodeJSON([]byte(content), &n) == nil {
		if n.ID != "" {
			e.ID = n.ID
		}
		if e.Text == "" {
			e.Text = n.Text
		}
		e.Metadata, _ = Plain(n.Metadata).(map[string]any)
		e.Document = n.Relationships[sourceRelation].NodeID
	} else {
		e.Metadata = stored
		for _, key := range []string{KeyContent, KeyType, KeyHash, KeyID} {
			delete(stored, key)
		}
	}
	if e.Document == "" {
		for _, key := range []string{KeySource, KeyDocument, KeyDocumentID} {
			if text, _ := stored[key].(string); text != "" && text != NoDocument {
				e.Document = text
				break
			}
		}
	}
	if len(e.Metadata) == 0 {
		e.Metadata = nil
	}
	return e
}

// Plain converts the numbers of decoded JSON to int64 and float64.
func Plain(v any) any {
	switch x := v.(type) {
	case json.Number:
		if n, err := x.Int64(); err == nil && !strings.ContainsAny(x.String(), ".eE") {
			return n
		}
		f, _ := x.Float64() // out of range is infinite
		return f
	case []any:
		for i := range x {
			x[i] = Plain(x[i])
		}
	case map[string]any:
		if x == nil {
			return map[string]any{}
		}
		for key := range x {
			x[key] = Plain(x[key])
		}
	}
	return v
}

// UUID returns an id for a store that accepts only UUIDs: the id itself if it is one in
// its usual form, else the UUIDv5 of it.
func UUID(id string) string {
	if isUUID(id) {
		return id
	}
	namespace := [16]byte{0x12, 0x34, 0x56, 0x78, 0x12, 0x34, 0x56, 0x78, 0x12, 0x34, 0x56, 0x78, 0x12, 0x34, 0x56, 0x78}
	h := sha1.New() //nolint:gosec // as above
	_, _ = h.Write(namespace[:])
	_, _ = h.Write([]byte("qtype index entry " + id))
	sum := h.Sum(nil)[:16]
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	text := hex.EncodeToString(sum)
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// isUUID reports whether a text is a UUID in lower case with hyphens.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		if hyphen != (c == '-') || !hyphen && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
