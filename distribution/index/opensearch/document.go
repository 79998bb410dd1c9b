package opensearch

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"math"
	"strings"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
)

// The fields that this module adds to documents.
const (
	ownField    = "_qtype"        // the hash and the document of an entry; not searched
	textField   = "qtype_text"    // the text of an entry whose fields do not contain it; searches of all fields skip names that begin with _
	bytesField  = "_qtype_vector" // the vector as bytes, for exact search without a plugin
	hashKey     = "hash"
	documentKey = "document"
)

// source returns the document of an entry.
func (x *Index) source(e index.Entry) (map[string]any, error) {
	if x.isText() {
		return textSource(e), nil
	}
	metadata, err := remote.Metadata(e, false)
	if err != nil {
		return nil, err
	}
	source := map[string]any{x.TextField: e.Text, x.VectorField: e.Vector, "metadata": metadata}
	if x.Vectors.Bytes() {
		source[bytesField] = vectorBytes(e.Vector)
	}
	return source, nil
}

// textSource returns the fields of a document. A text that is made of them is not stored.
func textSource(e index.Entry) map[string]any {
	source := make(map[string]any, len(e.Metadata)+2)
	maps.Copy(source, e.Metadata)
	if e.Text != "" && e.Text != remote.FieldsText(e.Metadata) && !isMadeOf(e.Text, e.Metadata) {
		source[textField] = e.Text
	}
	own := map[string]any{}
	if e.Hash != "" {
		own[hashKey] = e.Hash
	}
	if e.Document != "" {
		own[documentKey] = e.Document
	}
	if len(own) > 0 {
		source[ownField] = own
	}
	return source
}

// isMadeOf reports whether each line of a text is a line of the text of a field.
func isMadeOf(text string, fields map[string]any) bool {
	known := map[string]bool{"": true}
	for line := range strings.SplitSeq(remote.FieldsText(fields), "\n") {
		known[line] = true
	}
	for line := range strings.SplitSeq(text, "\n") {
		if !known[line] {
			return false
		}
	}
	return true
}

// hit is a document of an answer.
type hit struct {
	ID        string              `json:"_id"`
	Score     float64             `json:"_score"`
	Source    map[string]any      `json:"_source"`
	Highlight map[string][]string `json:"highlight"`
	Sort      []any               `json:"sort"`
}

// entry returns the entry of a document.
func (x *Index) entry(h hit) index.Entry {
	if !x.isText() {
		text, _ := h.Source[x.TextField].(string)
		metadata, _ := h.Source["metadata"].(map[string]any)
		e := remote.Entry(h.ID, text, metadata)
		e.ID = h.ID
		return e
	}
	e := index.Entry{ID: h.ID}
	e.Metadata, _ = remote.Plain(h.Source).(map[string]any)
	own, _ := e.Metadata[ownField].(map[string]any)
	e.Hash, _ = own[hashKey].(string)
	e.Document, _ = own[documentKey].(string)
	delete(e.Metadata, ownField)
	text, stored := e.Metadata[textField].(string)
	delete(e.Metadata, textField)
	if !stored {
		text = remote.FieldsText(e.Metadata)
	}
	e.Text = text
	if len(e.Metadata) == 0 {
		e.Metadata = nil
	}
	return e
}

// vectorBytes returns a vector of length 1 in the direction of v as big-endian bytes in
// base64, the form of the server's binary fields.
func vectorBytes(v []float32) string {
	data := make([]byte, 0, 4*len(v))
	for _, f := range normalized(v) {
		data = binary.BigEndian.AppendUint32(data, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(data)
}

// normalized returns the vector of length 1 in the direction of v.
func normalized(v []float32) []float32 {
	var sum float64
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if sum == 0 {
		return v
	}
	unit := make([]float32, len(v))
	for i, f := range v {
		unit[i] = float32(float64(f) / math.Sqrt(sum))
	}
	return unit
}
