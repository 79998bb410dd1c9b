package weaviate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/filter"
)

// found is an object of an answer.
type found struct {
	Properties object
	Additional struct {
		ID       string   `json:"id"`
		Distance *float64 `json:"distance"`
		Score    string   `json:"score"`
	}
}

// UnmarshalJSON separates the properties from what the server adds.
func (o *found) UnmarshalJSON(data []byte) error {
	if err := remote.DecodeJSON(data, &o.Properties); err != nil {
		return err
	}
	var rest struct {
		Additional json.RawMessage `json:"_additional"`
	}
	if err := json.Unmarshal(data, &rest); err != nil {
		return err
	}
	delete(o.Properties, "_additional")
	if rest.Additional == nil {
		return nil
	}
	return json.Unmarshal(rest.Additional, &o.Additional)
}

// id returns the id of the entry.
func (o found) id() string {
	if id, _ := o.Properties[remote.KeyID].(string); id != "" {
		return id
	}
	return o.Additional.ID
}

// entry returns the entry of an object.
func (x *Index) entry(o found) index.Entry {
	text, _ := o.Properties[x.TextKey].(string)
	id := o.id()
	delete(o.Properties, x.TextKey)
	for name, v := range o.Properties {
		if v == nil {
			delete(o.Properties, name)
		}
	}
	e := remote.Entry(id, text, o.Properties)
	e.ID, e.Text = id, text
	return e
}

// argument returns an argument of a GraphQL query.
func argument(name string, value any) string { return fmt.Sprintf("%s: %v", name, value) }

// quote returns a text as a literal of GraphQL, whose escapes are those of JSON.
func quote(text string) string {
	data, _ := remote.EncodeJSON(text) // texts have no error
	return string(data)
}

func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// query sends a GraphQL query.
func (x *Index) query(ctx context.Context, text string, into any) error {
	return whenReady(ctx, func() error { return x.queryOnce(ctx, text, into) })
}

// queryOnce sends a GraphQL query once.
func (x *Index) queryOnce(ctx context.Context, text string, into any) error {
	var answer struct {
		Data   json.RawMessage `json:"data"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := x.Client.Do(ctx, http.MethodPost, "/v1/graphql", object{"query": text}, &answer); err != nil {
		return err
	}
	if len(answer.Errors) > 0 {
		return serverError(remote.OneLine(answer.Errors[0].Message))
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		return errors.New("Weaviate: the answer is not the JSON that was expected") //nolint:staticcheck // a name
	}
	return nil
}

// get returns objects with the properties of the collection.
func (x *Index) get(ctx context.Context, c *collection, arguments ...string) ([]found, error) {
	text := fmt.Sprintf("{ Get { %s(%s) { %s _additional { id distance score } } } }", x.Collection, strings.Join(arguments, ", "), strings.Join(c.readable(), " "))
	var answer struct {
		Get map[string][]found
	}
	err := x.query(ctx, text, &answer)
	return answer.Get[x.Collection], err
}

// Search returns the best entries.
func (x *Index) Search(ctx context.Context, q index.Query) ([]index.Match, error) {
	return remote.Searches[collection]{Dimensions: x.Dimensions, Find: x.find, ByVector: x.byVector, ByText: x.byText}.Run(ctx, q)
}

// byVector returns the nearest entries.
func (x *Index) byVector(ctx context.Context, c *collection, q index.Query) ([]index.Match, error) {
	vector, err := json.Marshal(q.Vector)
	if err != nil {
		return nil, fmt.Errorf("the vector of the query: %w", err)
	}
	return x.best(ctx, c, q, argument("nearVector", "{vector: "+string(vector)+"}"), func(o found) float64 {
		switch {
		case o.Additional.Distance == nil:
			return 0
		case c.VectorIndex.Distance == "" || c.VectorIndex.Distance == "cosine":
			return 1 - *o.Additional.Distance
		}
		return -*o.Additional.Distance
	})
}

// byText returns the best entries that contain any word of the text.
func (x *Index) byText(ctx context.Context, c *collection, q index.Query) ([]index.Match, error) {
	words := remote.QueryWords(q.Text)
	if len(words) == 0 {
		return nil, nil
	}
	// Entries that other programs wrote are searched by their text.
	properties := []string{}
	for _, name := range []string{wordsProperty, x.TextKey} {
		if c.has(name) {
			properties = append(properties, name)
		}
	}
	bm25 := fmt.Sprintf("{query: %s, properties: %s}", quote(strings.Join(words, " ")), quoteAll(properties))
	matches, err := x.best(ctx, c, q, argument("bm25", bm25), func(o found) float64 {
		score, _ := strconv.ParseFloat(o.Additional.Score, 64)
		return score
	})
	if q.Highlight {
		for i := range matches {
			matches[i].Highlights = remote.Highlights(matches[i].Text, words)
		}
	}
	return matches, err
}

// best returns the best matches of a search, of which score returns the score.
func (x *Index) best(ctx context.Context, c *collection, q index.Query, search string, score func(found) float64) ([]index.Match, error) {
	condition, err := x.condition(ctx, c, q.Filter)
	if err != nil {
		return nil, err
	}
	return remote.Search(q.Limit, q.Filter, condition.Exact, func(n int) ([]index.Match, error) {
		arguments := []string{argument("limit", n), search}
		if condition.Found {
			arguments = append(arguments, argument("where", condition.Query))
		}
		objects, err := x.get(ctx, c, arguments...)
		matches := make([]index.Match, len(objects))
		for i, o := range objects {
			matches[i] = index.Match{Score: score(o), Entry: x.entry(o)}
		}
		return matches, err
	})
}

// condition returns a condition that all entries satisfy that satisfy the filter. Entries that
// other programs wrote have no tags; they are checked here.
func (x *Index) condition(ctx context.Context, c *collection, f filter.Filter) (remote.Translated[string], error) {
	if f == nil || !c.has(tagsProperty) {
		return remote.Translated[string]{Exact: f == nil}, nil
	}
	negates, err := x.hasNot(ctx)
	if err != nil {
		return remote.Translated[string]{}, err
	}
	d := dialect{remote.TagConditions[string]{Has: hasTag}, negates}
	t := remote.Translate(f, d)
	if t.Found {
		t.Query = d.Or([]string{t.Query, fmt.Sprintf(`{path: [%q], operator: IsNull, valueBoolean: true}`, tagsProperty)})
	}
	return t, nil
}

// The first version of Weaviate with the operator Not is 1.33.
const (
	majorWithNot = 1
	minorWithNot = 33
)

// hasNot reports whether the server has the operator Not. The server is called once.
func (x *Index) hasNot(ctx context.Context) (bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.negates != nil {
		return *x.negates, nil
	}
	var meta struct {
		Version string `json:"version"`
	}
	if err := x.Client.Do(ctx, http.MethodGet, "/v1/meta", nil, &meta); err != nil {
		return false, err
	}
	var major, minor int
	_, _ = fmt.Sscanf(meta.Version, "%d.%d", &major, &minor) // 0.0 if it has another form
	has := major > majorWithNot || major == majorWithNot && minor >= minorWithNot
	x.negates = &has
	return has, nil
}

// dialect makes Weaviate's conditions from tags.
type dialect struct {
	remote.TagConditions[string]
	negates bool
}

func hasTag(anyOf ...string) string { return containsAny(tagsProperty, anyOf...) }

// containsAny returns the condition that a property has any of the values.
func containsAny(property string, values ...string) string {
	return fmt.Sprintf(`{path: [%q], operator: ContainsAny, valueText: %s}`, property, quoteAll(values))
}

// And requires all conditions.
func (dialect) And(of []string) string { return combined("And", of) }

// Or requires any condition.
func (dialect) Or(of []string) string { return combined("Or", of) }

// Not requires that the condition is not satisfied.
func (dialect) Not(of string) string { return combined("Not", []string{of}) }

// Exact reports whether conditions can be negated.
func (d dialect) Exact() bool { return d.negates }

func combined(operator string, of []string) string {
	return "{operator: " + operator + ", operands: [" + strings.Join(of, ", ") + "]}"
}
