package redis_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/distribution/index/redis"
	"github.com/qtype-dev/qtype/distribution/redisclient"
	"github.com/qtype-dev/qtype/index/indextest"
	"github.com/qtype-dev/qtype/internal/filter"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// numbers are the values of the field n of the entries of a test, in their order.
func numbers() []any {
	return []any{-math.MaxFloat64, -1e9, int64(-2021), -2.5, int64(-1), -math.SmallestNonzeroFloat64, int64(0), 1e-300, 0.1, int64(1),
		int64(255), int64(256), int64(2020), 2020.5, int64(2021), int64(1)<<53 - 1, int64(1) << 53, int64(1) << 60, math.MaxFloat64}
}

// conditions returns filters for entries with numbers, texts, lists and mappings.
func conditions() (list []filter.Filter) {
	for _, n := range numbers() {
		for _, op := range []filter.Op{filter.Equal, filter.Less, filter.LessOrEqual, filter.Greater, filter.GreaterOrEqual} {
			list = append(list, filter.Compare{Field: "n", Op: op, Value: n}, filter.Not{Of: filter.Compare{Field: "n", Op: op, Value: n}})
		}
	}
	even := filter.Compare{Field: "even", Op: filter.Equal, Value: true}
	odd := filter.In{Field: "list", Values: []any{"a b,c", int64(7)}}
	inner := filter.Compare{Field: "map.in ner", Op: filter.Equal, Value: "{x|y}"}
	return append(list, even, odd, inner, filter.Exists{Field: "map"}, filter.Exists{Field: "missing"}, filter.Exists{Field: "list"},
		filter.And{Of: []filter.Filter{even, filter.Not{Of: odd}}}, filter.Or{Of: []filter.Filter{odd, inner}},
		filter.Not{Of: filter.Or{Of: []filter.Filter{odd, filter.And{Of: []filter.Filter{even, inner}}}}})
}

// entries returns the metadata of the entries.
func entries() (list []map[string]any) {
	for i, n := range numbers() {
		m := map[string]any{"n": n, "even": i%2 == 0, "list": []any{}, "map": nil, "n.x": "no path"}
		if i%3 == 0 {
			m["list"] = []any{"other", "a b,c"}
		}
		if i%5 == 0 {
			m["map"] = map[string]any{"in ner": "{x|y}"}
		}
		list = append(list, m)
	}
	return list
}

// TestQueries checks the language of queries with a real server.
func TestQueries(t *testing.T) {
	server, err := servertest.RedisStack()
	servertest.Need(t, err)
	client := redisclient.New(server.Address())
	t.Cleanup(func() { testkit.Must(t, client.Close()); testkit.Must(t, server.Close()) })
	add := func(key string, fields ...any) {
		t.Helper()
		testkit.Must(t, client.HSet(t.Context(), key, fields...).Err())
	}
	testkit.Must(t, client.Do(t.Context(), "FT.CREATE", "x", "STOPWORDS", 0, "SCHEMA", "text", "TEXT", redis.WordsField, "TEXT", redis.TagsField, "TAG").Err())
	for i, m := range entries() {
		text := "the\nfox\n" + indextest.OddQueries()[i]
		add(fmt.Sprint("entry", i), "text", text, redis.WordsField, redis.IndexedWords(text), redis.TagsField, strings.Join(redis.Tags(m), ","))
	}
	found := func(query string, args ...any) []any {
		t.Helper()
		reply, err := client.Do(t.Context(), append([]any{"FT.SEARCH", "x", query, "NOCONTENT", "LIMIT", 0, 1000, "DIALECT", 2}, args...)...).Slice()
		if err != nil {
			t.Fatalf("%.200q: %v", query, err)
		}
		return reply[1:]
	}
	t.Run("filters", func(t *testing.T) { checkConditions(t, func(query string) int { return len(found(query)) }) })
	t.Run("texts", func(t *testing.T) {
		even := filter.Compare{Field: "even", Op: filter.Equal, Value: true}
		for _, text := range indextest.OddQueries() {
			if len(redis.QueryWords(text)) == 0 {
				continue
			}
			found(redis.TextQuery(text, nil), "SCORER", "BM25STD", "WITHSCORES")
			found(redis.TextQuery(text, even), "SCORER", "BM25STD", "WITHSCORES")
		}
		if got := found(redis.TextQuery("fox", even)); len(got) != (len(numbers())+1)/2 {
			t.Errorf("with a filter: %v", got)
		}
	})
	t.Run("words", func(t *testing.T) { checkWords(t, add, func(query string) int { return len(found(query)) }) })
}

// checkConditions compares the number of entries that satisfy conditions in the server with
// that of those that satisfy the filter.
func checkConditions(t *testing.T, count func(query string) int) {
	expressed := 0
	for _, f := range conditions() {
		query := redis.Condition(f)
		if query == "" {
			continue
		}
		expressed++
		want := 0
		for _, m := range entries() {
			if f.Match(m) {
				want++
			}
		}
		if got := count(query); got != want {
			t.Errorf("%#v: the server found %d, want %d", f, got, want)
		}
	}
	if expressed < 150 {
		t.Errorf("only %d of %d conditions were made", expressed, len(conditions()))
	}
}

// checkWords checks that all words of texts are found, with and without the fields of this
// module.
func checkWords(t *testing.T, add func(key string, fields ...any), count func(query string) int) {
	for i, text := range []string{"under_score", "_private __init__ a_ _", "dots.and,commas", "a-b+c=d", "isn't", "x@y.example", "C:\\dir\\file", "naïve café", "“quoted” – …",
		"東京 都", "12.5e3 ½", "as inf isempty", "w'x'", "tab\tand\nlines\r\nand\n\nmore", "a\x7fb", "null\x00byte", "~50%*", "<tag>", "semi;colon", "हिन्दी", "e\u0301"} {
		mark := fmt.Sprintf("unique%d ", i)
		add(fmt.Sprint("words", i), "text", mark+text, redis.WordsField, mark+redis.IndexedWords(text), redis.TagsField, "own")
		add(fmt.Sprint("others", i), "text", mark+redis.IndexedWords(text))
		for _, word := range redis.QueryWords(text) {
			query := fmt.Sprintf("@text:(unique%d) %s", i, redis.TextQuery(word, nil))
			if got := count(query); got != 2 {
				t.Errorf("%q: the server found %d texts by %s", text, got, query)
			}
		}
	}
}

// TestConditions checks that the server for tests finds the entries that a real one finds.
func TestConditions(t *testing.T) {
	s := start(t)
	client := redisclient.New(s.Address())
	t.Cleanup(func() { testkit.Must(t, client.Close()) })
	testkit.Must(t, client.Do(t.Context(), "FT.CREATE", "x", "ON", "HASH", "PREFIX", 1, "conditions:", "SCHEMA", redis.TagsField, "TAG").Err())
	for i, m := range entries() {
		testkit.Must(t, client.HSet(t.Context(), fmt.Sprint("conditions:", i), redis.TagsField, strings.Join(redis.Tags(m), ",")).Err())
	}
	checkConditions(t, func(query string) int {
		reply, err := client.Do(t.Context(), "FT.SEARCH", "x", query, "NOCONTENT", "DIALECT", 2).Slice()
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return int(reply[0].(int64))
	})
}
