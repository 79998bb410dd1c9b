package spec

import "slices"

// IndexTool lets a model search an index. The result of a call is a list of passages with numbers, which an answer cites as in [1]; the cited ones are the sources of the answer.
type IndexTool struct {
	ToolBase `without:"outputs"`
	// Index is the id of the index.
	Index Ref[Index] `yaml:"index" jsonschema:"required"`
	// Mode is what is compared in a VectorIndex: vector (the meaning, by the embedding model of the index), text (the words), or hybrid (both rankings, combined). A DocumentIndex compares words.
	Mode string `yaml:"mode" default:"vector" validate:"oneof=vector text hybrid"`
	// Filters limit the search by metadata.
	Filters map[string]any `yaml:"filters"`
	// TopK is the maximum number of passages, if the call does not have an argument top_k.
	TopK int `yaml:"top_k" default:"5" validate:"min=1,max=50"`
}

// The arguments of an IndexTool with a fixed meaning. Others are conditions on the
// metadata field of the same name.
const (
	IndexToolQuery = "query" // the text to search for, required
	IndexToolTopK  = "top_k" // the maximum number of passages
)

// Arguments returns the inputs; without any, the query alone.
func (t *IndexTool) Arguments() []*Variable {
	if len(t.Inputs) > 0 {
		return t.Inputs
	}
	return []*Variable{{ID: IndexToolQuery, Type: Type{Name: "text"}}}
}

// Results returns nothing: the result is a list of passages.
func (t *IndexTool) Results() (vars []*Variable, declared bool) { return nil, false }

// MetadataFilters are the conditions on the metadata of passages.
func (t *IndexTool) MetadataFilters() (key string, filters map[string]any) {
	return "filters", t.Filters
}

// FilterInputs lists the arguments that are conditions on metadata.
func (t *IndexTool) FilterInputs() []*Variable {
	return slices.DeleteFunc(slices.Clone(t.Inputs), func(v *Variable) bool {
		return v == nil || v.ID == IndexToolQuery || v.ID == IndexToolTopK
	})
}
