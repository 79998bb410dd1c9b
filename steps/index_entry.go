package steps

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/spec/value"
)

// The fields of RAGDocument and RAGChunk, see package value.
const (
	fieldContent    = "content"
	fieldMetadata   = "metadata"
	fieldVector     = "vector"
	fieldChunkID    = "chunk_id"
	fieldDocumentID = "document_id"
	fieldFileID     = "file_id"
	fieldFileName   = "file_name"
	fieldHighlights = "highlights" // added to what a search finds
)

// ragEntry makes an entry of a vector index from a RAGChunk or a RAGDocument.
func ragEntry(v any) (index.Entry, error) {
	r, ok := v.(*value.Record)
	if !ok || r.Type() != "RAGChunk" && r.Type() != "RAGDocument" {
		return index.Entry{}, fmt.Errorf("expected a RAGChunk or a RAGDocument, got %s", valueKind(v))
	}
	e := index.Entry{ID: recordText(r, fieldChunkID), Document: recordText(r, fieldDocumentID)}
	if r.Type() == "RAGDocument" {
		e.ID = recordText(r, fieldFileID)
		e.Document = e.ID
	}
	if e.ID == "" {
		return e, errors.New("its id is empty")
	}
	var err error
	if e.Text, err = ragText(r); err != nil {
		return e, err
	}
	metadata, _ := r.Get(fieldMetadata)
	e.Metadata, _ = value.ToGo(metadata).(map[string]any)
	vector, _ := r.Get(fieldVector)
	e.Vector, err = vectorOf(vector)
	return e, err
}

// ragText returns the content of a RAGChunk or RAGDocument as text.
func ragText(r *value.Record) (string, error) {
	content, _ := r.Get(fieldContent)
	if _, raw := content.([]byte); raw {
		return "", fmt.Errorf("the content of %s is bytes; make text of it with a DocToTextConverter", recordText(r, fieldFileName))
	}
	return value.Text(content), nil
}

func recordText(r *value.Record, field string) string {
	v, _ := r.Get(field)
	return value.Text(v)
}

// valueKind names the kind of a value for a message.
func valueKind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case *value.Record:
		if v.Type() != "" {
			return v.Type()
		}
		return "an object"
	case []any:
		return "a list"
	case string:
		return "text"
	case int64, float64:
		return "a number"
	}
	return "another type"
}

// vectorOf converts a list of numbers; nil for null and for an empty list.
func vectorOf(v any) ([]float32, error) {
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("its vector is %s, not a list of numbers", valueKind(v))
	}
	var vector []float32
	for _, x := range list {
		switch x := x.(type) {
		case float64:
			vector = append(vector, float32(x))
		case int64:
			vector = append(vector, float32(x))
		default:
			return nil, fmt.Errorf("its vector has %s, which is not a number", valueKind(x))
		}
	}
	return vector, nil
}

// listOfVector is the reverse of vectorOf.
func listOfVector(vector []float32) []any {
	numbers := make([]any, len(vector))
	for i, x := range vector {
		numbers[i] = float64(x)
	}
	return numbers
}

// idFields are the fields that identify a document without an id_field, the first one
// that it has.
func idFields() []string {
	return []string{"_id", "id", "doc_id", fieldChunkID, fieldDocumentID, "uuid", fieldFileID}
}

// documentEntry makes an entry of a full-text index of the variables of a row. Records and
// objects add their fields, other values a field with the name of the variable; a later
// one replaces an earlier one. The id of a document without one is made from its fields,
// so that it is indexed once.
func documentEntry(row *Row, inputs []slot, idField string) (index.Entry, error) {
	var e index.Entry
	fields, order := map[string]any{}, []string(nil)
	set := func(name string, v any) {
		if _, known := fields[name]; !known {
			order = append(order, name)
		}
		fields[name] = value.ToGo(v)
	}
	for _, in := range inputs {
		switch v := in.orNull(row).(type) {
		case *value.Record:
			for name, x := range v.All() {
				if name != fieldVector || v.Type() != "RAGChunk" { // a full-text index has no vectors
					set(name, x)
				}
			}
			e.Document = documentOf(v, e.Document)
		default:
			set(in.of.ID, v)
		}
	}
	id, err := documentID(fields, idField)
	if err != nil {
		return e, err
	}
	delete(fields, "_id") // it is the id of the entry; stores do not accept it as a field
	e.ID, e.Metadata = id, fields
	e.Text = searchText(fields, order)
	if e.ID == "" {
		hash, err := index.Hash(e, "")
		if err != nil {
			return e, err
		}
		e.ID = hash
	}
	return e, nil
}

// documentOf returns the document that a record came from.
func documentOf(r *value.Record, other string) string {
	switch r.Type() {
	case "RAGDocument":
		return recordText(r, fieldFileID)
	case "RAGChunk":
		return recordText(r, fieldDocumentID)
	}
	return other
}

// documentID returns the id of a document; "" if it has none and idField is not set.
func documentID(fields map[string]any, idField string) (string, error) {
	names := idFields()
	if idField != "" {
		names = []string{idField}
	}
	for _, name := range names {
		switch v := fields[name].(type) {
		case nil:
		case string, int64:
			if id := value.Text(v); id != "" {
				return id, nil
			}
		default:
			if idField != "" {
				return "", fmt.Errorf("the id in field %s is neither text nor a whole number", name)
			}
		}
	}
	if idField != "" {
		return "", fmt.Errorf("the document has no field %s, which is the id_field of the index", idField)
	}
	return "", nil
}

// searchText returns the texts of a document: those of its fields, one per line, in their
// order, without its ids.
func searchText(fields map[string]any, order []string) string {
	var texts []string
	for _, name := range order {
		if slices.Contains(idFields(), name) {
			continue
		}
		texts = appendTexts(texts, fields[name])
	}
	return strings.Join(texts, "\n")
}

func appendTexts(texts []string, v any) []string {
	switch v := v.(type) {
	case string:
		if v != "" {
			texts = append(texts, v)
		}
	case []any:
		for _, item := range v {
			texts = appendTexts(texts, item)
		}
	}
	return texts
}

// digest is a short form of an id, for sets of many.
type digest [16]byte

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:16])
}
