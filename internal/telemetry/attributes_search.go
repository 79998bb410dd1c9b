package telemetry

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// documentLists are the attributes with the documents that a step has found or sorted, by
// the kind of its spans.
var documentLists = map[string]string{"RETRIEVER": "retrieval.documents", "RERANKER": "reranker.output_documents"}

// foundDocuments are the search results in the outputs of a step: their ids and scores, and
// their texts and metadata unless content is hidden.
func foundDocuments(c content, op *steps.Operation, outputs []value.Field) []attribute.KeyValue {
	list := documentLists[spec.SpanOf(op.Step.Step)]
	if list == "" {
		return nil
	}
	var set []attribute.KeyValue
	for _, f := range outputs {
		results, _ := f.Value.([]any)
		for i, v := range results {
			if r, ok := v.(*value.Record); ok {
				set = append(set, documentAttributes(c, indexed(list, i, "document"), r)...)
			}
		}
	}
	return set
}

// documentAttributes describe one search result.
func documentAttributes(c content, prefix string, r *value.Record) []attribute.KeyValue {
	id, _ := r.Get("doc_id")
	set := []attribute.KeyValue{attribute.String(prefix+".id", value.Text(id))}
	if score, ok := r.Get("score"); ok {
		if n, isNumber := score.(float64); isNumber {
			set = append(set, attribute.Float64(prefix+".score", n))
		}
	}
	if c.hidden {
		return set
	}
	found, _ := r.Get("content")
	chunk, ok := found.(*value.Record)
	if !ok || chunk.Type() != "RAGChunk" {
		return append(set, attribute.String(prefix+".content", c.cut(value.Text(found))))
	}
	text, _ := chunk.Get("content")
	metadata, _ := chunk.Get("metadata")
	return append(set, attribute.String(prefix+".content", c.cut(value.Text(text))), attribute.String(prefix+".metadata", c.cut(value.Text(metadata))))
}
