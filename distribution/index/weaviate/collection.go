package weaviate

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
)

// The properties that this module adds to those of LlamaIndex.
const (
	tagsProperty  = "_qtype_tags"  // see remote.Tags
	wordsProperty = "_qtype_words" // see remote.IndexedWords
)

// maxProperties bounds the properties of a collection: each takes files and memory of the
// server. Metadata without a property is in the JSON of the entry.
const maxProperties = 100

type object = map[string]any

// collection is Weaviate's description of a collection.
type collection struct {
	Properties   []property `json:"properties"`
	VectorConfig object     `json:"vectorConfig"` // the named vectors
	VectorIndex  struct {
		Distance string `json:"distance"`
	} `json:"vectorIndexConfig"`
}

// property is a declared property of the objects.
type property struct {
	Name       string   `json:"name"`
	DataType   []string `json:"dataType"`
	Token      string   `json:"tokenization,omitempty"`
	Searchable *bool    `json:"indexSearchable,omitempty"`
	Filterable *bool    `json:"indexFilterable,omitempty"`
}

// has reports whether the collection has a property.
func (c *collection) has(name string) bool { return c.typeOf(name) != "" }

// typeOf returns the type of a property, empty for none.
func (c *collection) typeOf(name string) string {
	for _, p := range c.Properties {
		if p.Name == name && len(p.DataType) > 0 {
			return p.DataType[0]
		}
	}
	return ""
}

// only returns the collection with some of its properties.
func (c *collection) only(names ...string) *collection {
	part := *c
	part.Properties = slices.DeleteFunc(slices.Clone(c.Properties), func(p property) bool { return !slices.Contains(names, p.Name) })
	return &part
}

// readable returns the names of the properties that a query reads without more detail:
// those of texts, numbers, booleans and lists of them.
func (c *collection) readable() []string {
	simple := []string{"text", "string", "int", "number", "boolean", "date", "uuid"}
	var names []string
	for _, p := range c.Properties {
		if len(p.DataType) > 0 && slices.Contains(simple, strings.TrimSuffix(p.DataType[0], "[]")) && p.Name != tagsProperty && p.Name != wordsProperty {
			names = append(names, p.Name)
		}
	}
	return names
}

func (x *Index) schemaPath() string { return "/v1/schema/" + x.Collection }

// find returns the collection, nil if it does not exist. It is not kept: another program
// may add properties or replace the collection.
func (x *Index) find(ctx context.Context) (*collection, error) {
	var c collection
	err := x.Client.Do(ctx, http.MethodGet, x.schemaPath(), nil, &c)
	switch {
	case remote.IsStatus(err, http.StatusNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case len(c.VectorConfig) > 0:
		return nil, fmt.Errorf("collection %s has named vectors, which are not supported", x.Collection)
	}
	return &c, nil
}

// create returns the collection, which it creates if it does not exist.
func (x *Index) create(ctx context.Context) (*collection, error) {
	c, err := x.find(ctx)
	if c != nil || err != nil {
		return c, err
	}
	body := object{
		"class": x.Collection, "vectorizer": "none", "vectorIndexConfig": object{"distance": x.Distance},
		"invertedIndexConfig": object{"indexNullState": true, "stopwords": object{"preset": "none"}},
		"properties":          x.initialProperties(),
	}
	created := x.Client.Do(ctx, http.MethodPost, "/v1/schema", body, nil)
	// Another process may have created it at the same time, which is status 422.
	c, err = x.find(ctx)
	if c == nil && err == nil {
		err = created
	}
	return c, err
}

// initialProperties returns the properties of a new collection.
func (x *Index) initialProperties() []property {
	no := false
	list := []property{
		{Name: x.TextKey, DataType: []string{"text"}, Token: "word"},
		{Name: wordsProperty, DataType: []string{"text"}, Token: "whitespace", Filterable: &no},
		{Name: tagsProperty, DataType: []string{"text[]"}, Token: "field", Searchable: &no},
		{Name: remote.KeyContent, DataType: []string{"text"}, Searchable: &no, Filterable: &no},
	}
	for _, name := range []string{remote.KeyType, remote.KeyDocument, remote.KeyDocumentID, remote.KeySource, remote.KeyHash, remote.KeyID} {
		list = append(list, property{Name: name, DataType: []string{"text"}, Token: "field", Searchable: &no})
	}
	return list
}

// properties returns the properties of the object of an entry. The metadata is in the JSON of
// the entry; single values whose keys can be names have a property too, as LlamaIndex
// writes them.
func (x *Index) properties(ctx context.Context, c *collection, e index.Entry) (object, error) {
	stored, err := remote.Metadata(e, false)
	if err != nil {
		return nil, err
	}
	properties := object{x.TextKey: e.Text}
	for key, v := range stored {
		_, isMetadata := e.Metadata[key]
		if isMetadata {
			if key == x.TextKey || !isPropertyName(key) {
				continue
			}
			if ok, err := x.declare(ctx, c, key, v); err != nil {
				return nil, err
			} else if !ok {
				continue
			}
		}
		properties[key] = v
	}
	if id := remote.UUID(e.ID); id != e.ID {
		properties[remote.KeyID] = e.ID
	}
	if c.has(tagsProperty) {
		properties[tagsProperty] = remote.Tags(e.Metadata)
		properties[wordsProperty] = remote.IndexedWords(e.Text)
	}
	return properties, nil
}

// isPropertyName reports whether a key of metadata can be a property. The server changes a
// capital letter at the beginning, so such keys are not.
func isPropertyName(key string) bool {
	const maxName = 230
	if key == "" || len(key) > maxName || key[0] < 'a' || key[0] > 'z' || key == "id" || key == "vector" {
		return false
	}
	return !strings.ContainsFunc(key, func(c rune) bool {
		return c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}

// declare reports whether the collection has a property for a value, which it adds if there
// is room.
func (x *Index) declare(ctx context.Context, c *collection, name string, v any) (bool, error) {
	wanted := typeOf(v)
	if has := c.typeOf(name); has != "" || wanted == "" || len(c.Properties) >= maxProperties {
		return has != "" && has == wanted, nil
	}
	no := false
	p := property{Name: name, DataType: []string{wanted}}
	if wanted == "text" {
		p.Token, p.Searchable = "field", &no
	}
	err := x.Client.Do(ctx, http.MethodPost, x.schemaPath()+"/properties", p, nil)
	if remote.IsStatus(err, http.StatusUnprocessableEntity) { // another process has added it
		if now, e := x.find(ctx); e == nil && now != nil && now.has(name) {
			*c = *now
			return c.typeOf(name) == wanted, nil
		}
	}
	if err != nil {
		return false, err
	}
	c.Properties = append(c.Properties, p)
	return true, nil
}

// typeOf returns the type of a property for a value, empty if there is none.
func typeOf(v any) string {
	switch v.(type) {
	case string:
		return "text"
	case bool:
		return "boolean"
	case int, int64, float64:
		return "number"
	}
	return ""
}
