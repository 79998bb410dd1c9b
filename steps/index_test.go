package steps_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/index/embedded"
	"github.com/qtype-dev/qtype/internal/model/mock"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// embedder is a mock that counts texts and rejects those with "reject".
type embedder struct {
	model.Embedder
	texts atomic.Int64
	calls atomic.Int64
	down  error
}

func newEmbedder() *embedder {
	m := &spec.EmbeddingModel{Model: spec.Model{ID: "vectors", Provider: "mock"}, Dimensions: 16}
	return &embedder{Embedder: mock.NewEmbedder(m, mock.Options{})}
}

func (e *embedder) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	e.calls.Add(1)
	e.texts.Add(int64(len(texts)))
	if e.down != nil {
		return nil, model.Usage{}, e.down
	}
	for _, text := range texts {
		if strings.Contains(text, "reject") {
			return nil, model.Usage{}, &model.Error{Model: "vectors", Status: 400, Message: "text not accepted"}
		}
	}
	return e.Embedder.Embed(ctx, texts)
}

// chunk returns a RAGChunk without a vector.
func chunk(id, document, text string, metadata ...value.Field) *value.Record {
	return value.NewRecord("RAGChunk", value.Field{Name: "vector"}, value.Field{Name: "content", Value: text},
		value.Field{Name: "metadata", Value: value.NewRecord("", metadata...)},
		value.Field{Name: "chunk_id", Value: id}, value.Field{Name: "document_id", Value: document})
}

func indexEnv(l layout, x index.Index, m model.Embedder) *steps.Env {
	return &steps.Env{Slots: l, Index: func(spec.Index) (index.Index, error) { return x, nil },
		Embedder: func(*spec.EmbeddingModel) (model.Embedder, error) { return m, nil }}
}

func vectorIndex() *spec.VectorIndex {
	return &spec.VectorIndex{IndexBase: spec.IndexBase{ID: "notes"}, EmbeddingModel: spec.Ref[*spec.EmbeddingModel]{ID: "vectors", To: &spec.EmbeddingModel{}}}
}

func chunkRows(l layout, chunks ...any) []*steps.Row {
	var rows []*steps.Row
	for _, c := range chunks {
		rows = append(rows, l.row(map[string]any{"chunk": c}))
	}
	return rows
}

func TestDocumentEmbedder(t *testing.T) {
	l := declare(t, nil, "chunk: RAGChunk", "embedded: RAGChunk")
	m := newEmbedder()
	s := &spec.DocumentEmbedder{StepBase: l.base("step", []string{"chunk"}, []string{"embedded"}),
		Model: spec.Ref[*spec.EmbeddingModel]{ID: "vectors", To: &spec.EmbeddingModel{}}, Concurrent: spec.Concurrent{ConcurrencyConfig: &spec.ConcurrencyConfig{NumWorkers: 3}}}
	chunks := []any{chunk("c1", "d", "one", value.Field{Name: "page", Value: int64(3)}), "text", chunk("c2", "d", "reject this"), chunk("c3", "d", " "), nil, chunk("c4", "d", "two")}
	rows := driveRows(t, build(t, s, indexEnv(l, nil, m)), chunkRows(l, chunks...)...)
	var got []string
	for i, row := range rows {
		if row.Err != nil {
			got = append(got, row.Err.Err.Error())
			continue
		}
		e := row.Values[1].(*value.Record)
		v, _ := e.Get("vector")
		list, _ := v.([]any)
		got = append(got, fmt.Sprint(len(list), " ", value.Text(e.With("vector", nil))))
		if row.Values[0] != chunks[i] {
			t.Error("the input was changed")
		}
	}
	expect(t, "rows", got,
		`16 {"vector":null,"content":"one","metadata":{"page":3},"chunk_id":"c1","document_id":"d"}`,
		"chunk: expected a RAGChunk, got text",
		"model vectors: HTTP 400: text not accepted",
		"the text is empty: there is nothing to embed",
		"chunk: expected a RAGChunk, got null",
		`16 {"vector":null,"content":"two","metadata":{},"chunk_id":"c4","document_id":"d"}`)
}

// TestDocumentEmbedder_Batches: a rejected text costs a logarithmic number of calls, and an
// outage, or a model with another number of dimensions, one call.
func TestDocumentEmbedder_Batches(t *testing.T) {
	l := declare(t, nil, "chunk: RAGChunk", "embedded: RAGChunk")
	m := newEmbedder()
	s := &spec.DocumentEmbedder{StepBase: l.base("step", []string{"chunk"}, []string{"embedded"}),
		Model: spec.Ref[*spec.EmbeddingModel]{ID: "vectors", To: &spec.EmbeddingModel{}}}
	var chunks []any
	for i := range 256 {
		text := fmt.Sprint("text ", i)
		if i == 77 {
			text = "reject"
		}
		chunks = append(chunks, chunk(fmt.Sprint("c", i), "d", text))
	}
	rows := driveRows(t, build(t, s, indexEnv(l, nil, m)), chunkRows(l, chunks...)...)
	for i, row := range rows {
		if (row.Err != nil) != (i == 77) {
			t.Errorf("row %d: %v", i, row.Err)
		}
	}
	if m.calls.Load() != 2+2*7 {
		t.Errorf("%d calls", m.calls.Load())
	}
	for _, err := range []*model.Error{{Message: "server is down", Temporary: true}, {Message: "8 dimensions", Err: model.ErrDimensions}} {
		m.calls.Store(0)
		m.down = err
		rows = driveRows(t, build(t, s, indexEnv(l, nil, m)), chunkRows(l, chunks[:100]...)...)
		if m.calls.Load() != 1 || len(rows) != 100 || rows[50].Err == nil {
			t.Errorf("%d calls, %d rows, %v", m.calls.Load(), len(rows), rows[50].Err)
		}
	}
}

func upsertStep(l layout, x spec.Index, inputs ...string) *spec.IndexUpsert {
	return &spec.IndexUpsert{StepBase: l.base("step", inputs, nil), Index: spec.Ref[spec.Index]{ID: "notes", To: x}}
}

func counts(r steps.Runner) steps.IndexCounts { return r.(steps.IndexWriter).Counts().Counts() }

func TestIndexUpsert_VectorIndex(t *testing.T) {
	l := declare(t, nil, "chunk: RAGChunk")
	x, m := newIndex(t), newEmbedder()
	env := indexEnv(l, x, m)
	s := upsertStep(l, vectorIndex(), "chunk")
	document := value.NewRecord("RAGDocument", value.Field{Name: "content", Value: "whole"}, value.Field{Name: "file_id", Value: "f1"},
		value.Field{Name: "file_name", Value: "a.md"}, value.Field{Name: "metadata", Value: value.NewRecord("")})
	embedded := chunk("c3", "d", "with vector").With("vector", slices.Repeat([]any{0.25}, 16))
	all := []any{chunk("c1", "d", "one", value.Field{Name: "page", Value: int64(3)}), document, embedded, int64(5), chunk("c1", "d", "one again"), chunk("c4", "d", "reject"),
		chunk("c5", "d", "short").With("vector", []any{1.0})}
	r := build(t, s, env)
	var errs []string
	for _, row := range driveRows(t, r, chunkRows(l, all...)...) {
		if row.Err != nil {
			errs = append(errs, row.Err.Err.Error())
		}
	}
	expect(t, "errors", errs, "chunk: expected a RAGChunk or a RAGDocument, got a number", "model vectors: HTTP 400: text not accepted",
		"chunk: its vector has 1 dimensions, but the embedding model vectors of the index has 16")
	if got := counts(r); got != (steps.IndexCounts{Written: 3}) {
		t.Errorf("%+v", got)
	}
	var stored []string
	for _, id := range slices.Sorted(maps.Keys(x.entries)) {
		e := x.entries[id]
		stored = append(stored, fmt.Sprint(e.ID, " ", e.Document, " ", e.Text, " ", len(e.Vector), " ", e.Metadata))
	}
	expect(t, "entries", stored, "c1 d one again 16 map[]", "c3 d with vector 16 map[]", "f1 f1 whole 16 map[]")

	// The same rows again: nothing is embedded nor written.
	m.texts.Store(0)
	x.puts = 0
	r = build(t, s, env)
	driveRows(t, r, chunkRows(l, chunk("c1", "d", "one again"), document, embedded)...)
	if got := counts(r); got != (steps.IndexCounts{Unchanged: 3}) || m.texts.Load() != 0 || x.puts != 0 {
		t.Errorf("%+v, %d texts embedded, %d entries written", got, m.texts.Load(), x.puts)
	}
	r = build(t, s, env)
	driveRows(t, r, chunkRows(l, chunk("c1", "d", "one again", value.Field{Name: "page", Value: int64(4)}))...)
	if got := counts(r); got != (steps.IndexCounts{Written: 1}) || x.entries["c1"].Metadata["page"] != int64(4) {
		t.Errorf("%+v, %v", got, x.entries["c1"])
	}
}

func TestIndexUpsert_DocumentIndex(t *testing.T) {
	l := declare(t, nil, "title: text", "book: any", "n: int")
	x := newIndex(t)
	declared := &spec.DocumentIndex{IndexBase: spec.IndexBase{ID: "books"}}
	object := func(fields ...value.Field) any { return value.NewRecord("", fields...) }
	row := func(title string, book any) *steps.Row {
		return l.row(map[string]any{"title": title, "book": book, "n": int64(1)})
	}
	id := func(name string, v any) value.Field { return value.Field{Name: name, Value: v} }
	x.reject = func(e index.Entry) error {
		if e.ID == "bad" {
			return errors.New("not accepted")
		}
		return nil
	}
	r := build(t, upsertStep(l, declared, "title", "book", "n"), indexEnv(l, x, nil))
	rows := driveRows(t, r, row("A", object(id("_id", "x"), id("id", "y"))), row("B", object(id("uuid", "u"), id("title", "B2"))), row("C", nil), row("C", nil),
		row("D", object(id("doc_id", int64(7)))), row("E", object(id("id", "bad"))), row("F", object(id("id", "y"))), row("G", object(id("id", "y"))))
	for i, row := range rows {
		if (row.Err != nil) != (i == 5) || row.Err != nil && row.Err.Err.Error() != "not accepted" {
			t.Errorf("row %d: %v", i+1, row.Err)
		}
	}
	var stored []string
	for _, id := range slices.Sorted(maps.Keys(x.entries)) {
		e := x.entries[id]
		if len(id) == 32 {
			id = "made"
		}
		stored = append(stored, fmt.Sprint(id, " ", e.Text, " ", e.Metadata))
	}
	slices.Sort(stored)
	expect(t, "documents", stored, "7 D map[doc_id:7 n:1 title:D]", "made C map[book:<nil> n:1 title:C]", "u B2 map[n:1 title:B2 uuid:u]",
		"x A map[id:y n:1 title:A]", "y G map[id:y n:1 title:G]")
	declared.IDField = "isbn"
	rows = driveRows(t, build(t, upsertStep(l, declared, "title", "book"), indexEnv(l, x, nil)), row("A", object(id("isbn", "i1"))), row("B", object(id("id", "i2"))))
	if rows[0].Err != nil || rows[1].Err == nil || rows[1].Err.Err.Error() != "the document has no field isbn, which is the id_field of the index" {
		t.Errorf("%v, %v", rows[0].Err, rows[1].Err)
	}
	x.err = errors.New("the server is down")
	for _, row := range driveRows(t, build(t, upsertStep(l, declared, "title", "book"), indexEnv(l, x, nil)), row("A", object(id("isbn", "i3"))), row("B", object(id("isbn", "i4")))) {
		if row.Err == nil {
			t.Error("a row has not failed")
		}
	}
}

func TestIndexUpsert_Sync(t *testing.T) {
	l := declare(t, nil, "chunk: RAGChunk")
	set := value.Field{Name: "set", Value: "a"}
	tests := []struct {
		name    string
		rows    []any
		failed  bool // a failed row passes
		dropped int64
		partial bool
		filters map[string]any
		want    steps.IndexCounts
		left    string
	}{
		{name: "removes", rows: []any{chunk("c1", "d", "1")}, want: steps.IndexCounts{Unchanged: 1, Removed: 1200}, left: "c1"},
		{name: "failed row", rows: []any{chunk("c1", "d", "1")}, failed: true, want: steps.IndexCounts{Unchanged: 1, Kept: "rows failed"}},
		{name: "dropped row", rows: []any{chunk("c1", "d", "1")}, dropped: 1, want: steps.IndexCounts{Unchanged: 1, Kept: "rows failed"}},
		{name: "partial", rows: []any{chunk("c1", "d", "1")}, partial: true, want: steps.IndexCounts{Unchanged: 1, Kept: "the run read only a part of its input"}},
		{name: "empty", want: steps.IndexCounts{Kept: "the run contained no entries"}},
		{name: "scope", rows: []any{chunk("new", "d", "new", set)}, filters: map[string]any{"set": "a"}, want: steps.IndexCounts{Written: 1, Removed: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, m := newIndex(t), newEmbedder()
			env := indexEnv(l, x, m)
			fill := []any{chunk("c1", "d", "1"), chunk("scoped", "d", "2", set)}
			for i := range 1199 {
				fill = append(fill, chunk(fmt.Sprintf("x%04d", i), "d", "text"))
			}
			driveRows(t, build(t, upsertStep(l, vectorIndex(), "chunk"), env), chunkRows(l, fill...)...)
			before := len(x.entries)
			s := upsertStep(l, vectorIndex(), "chunk")
			s.Sync, s.SyncFilters = true, tt.filters
			env.Failures = func() int64 { return tt.dropped }
			r := build(t, s, env)
			if tt.failed {
				r.(steps.FailureObserver).Failed(nil)
			}
			ctx := t.Context()
			if tt.partial {
				ctx = steps.WithPartialInput(ctx, func() string { return steps.PartialInput })
			}
			driveCtx(ctx, t, r, chunkRows(l, tt.rows...)...)
			if got := counts(r); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
			if want := before + int(tt.want.Written-tt.want.Removed); len(x.entries) != want {
				t.Errorf("%d entries are left, want %d", len(x.entries), want)
			}
		})
	}
}

// TestIndexUpsert_SyncMeanwhile: a run removes nothing that another one has added to the index since it
// began.
func TestIndexUpsert_SyncMeanwhile(t *testing.T) {
	l := declare(t, nil, "chunk: RAGChunk")
	x, m := newIndex(t), newEmbedder()
	env := indexEnv(l, x, m)
	fill := func(chunks ...any) {
		driveRows(t, build(t, upsertStep(l, vectorIndex(), "chunk"), env), chunkRows(l, chunks...)...)
	}
	fill(chunk("kept", "d", "1"), chunk("gone", "d", "2"))
	s := upsertStep(l, vectorIndex(), "chunk")
	s.Sync = true
	r := build(t, s, env).(interface {
		steps.Batch
		steps.Closer
	})
	emit := func(*steps.Row) error { return nil }
	testkit.Must(t, r.Batch(t.Context(), chunkRows(l, chunk("kept", "d", "1")), emit))
	fill(chunk("other run", "d", "3"))
	testkit.Must(t, r.Batch(t.Context(), chunkRows(l, chunk("new", "d", "4")), emit))
	testkit.Must(t, r.Close(t.Context(), emit))
	expect(t, "entries", slices.Sorted(maps.Keys(x.entries)), "kept", "new", "other run")
	if got := counts(r); got != (steps.IndexCounts{Written: 1, Unchanged: 1, Removed: 1}) {
		t.Errorf("%+v", got)
	}
}

func TestVectorSearch(t *testing.T) {
	l := declare(t, nil, "chunk: RAGChunk", "query: text", "found: list[RAGSearchResult]")
	x, m := newIndex(t), newEmbedder()
	env := indexEnv(l, x, m)
	var chunks []any
	for i, text := range []string{"the parcel is lost", "parcel and letter", "an apple pie", "the parcel came"} {
		chunks = append(chunks, chunk(fmt.Sprint("c", i+1), fmt.Sprint("d", i%2), text, value.Field{Name: "page", Value: int64(i)}))
	}
	driveRows(t, build(t, upsertStep(l, vectorIndex(), "chunk"), env), chunkRows(l, chunks...)...)
	step := func(change func(*spec.VectorSearch)) *spec.VectorSearch {
		two := 2
		s := &spec.VectorSearch{StepBase: l.base("step", []string{"query"}, []string{"found"}), Index: spec.Ref[*spec.VectorIndex]{ID: "notes", To: vectorIndex()}, DefaultTopK: &two, Mode: "vector"}
		change(s)
		return s
	}
	find := func(s *spec.VectorSearch, query any) string {
		t.Helper()
		row := driveRows(t, build(t, s, env), l.row(map[string]any{"query": query}))[0]
		if row.Err != nil {
			return row.Err.Err.Error()
		}
		checked, err := value.Coerce(l[2].Type, row.Values[2])
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range checked.([]any) {
			doc, _ := r.(*value.Record).Get("doc_id")
			c, _ := r.(*value.Record).Get("content")
			id, _ := c.(*value.Record).Get("chunk_id")
			meta, _ := c.(*value.Record).Get("metadata")
			ids = append(ids, fmt.Sprint(id, "/", doc, value.Text(meta)))
		}
		return strings.Join(ids, " ")
	}
	none := func(*spec.VectorSearch) {}
	expect(t, "results", []string{find(step(none), "the parcel is lost"),
		find(step(func(s *spec.VectorSearch) { s.Filters = map[string]any{"page": map[string]any{"gte": 2}} }), "parcel"),
		find(step(func(s *spec.VectorSearch) { s.MinScore = new(float64); *s.MinScore = 0.99 }), "the parcel is lost"),
		find(step(func(s *spec.VectorSearch) { s.Mode, s.Highlights = "text", true }), "came"),
		find(step(func(s *spec.VectorSearch) { s.MinScore = new(float64); *s.MinScore = 2 }), "parcel"),
		find(step(none), ""),
		find(step(none), value.Unset),
	}, `c1/d0{"page":0} c4/d1{"page":3}`, `c4/d1{"page":3}`, `c1/d0{"page":0}`, `c4/d1{"page":3,"highlights":["the parcel **came**"]}`, "",
		"the query is empty: there is nothing to embed", "variable query is not set")
	find(step(func(s *spec.VectorSearch) { s.DefaultTopK = nil }), "parcel")
	if x.query.Limit != 10 {
		t.Errorf("null as default_top_k is a limit of %d", x.query.Limit)
	}
}

// TestVectorSearch_Checks checks that an index that cannot be searched is noticed before the model is called, by
// the step and by the tool.
func TestVectorSearch_Checks(t *testing.T) {
	l := declare(t, nil, "query: text", "found: list[RAGSearchResult]")
	other := filepath.Join(t.TempDir(), "other.db")
	made := embedded.Open(embedded.Options{Path: other, Vectors: true})
	testkit.Must(t, made.Put(t.Context(), []index.Entry{{ID: "1", Vector: make([]float32, 16), Model: "openai/small/16"}}))
	testkit.Must(t, made.Close())
	damaged := testkit.WriteFile(t, "text.db", strings.Repeat("not a database ", 100))
	for path, want := range map[string]string{
		damaged: "not a SQLite database, or damaged",
		other:   "has vectors of the embedding model openai/small/16, which cannot be compared with those of mock/vectors/16: ingest again, with sync: true if documents were removed, or clear the index first",
	} {
		x, m := embedded.Open(embedded.Options{Path: path, Vectors: true}), newEmbedder()
		step := build(t, &spec.VectorSearch{StepBase: l.base("step", []string{"query"}, []string{"found"}), Index: spec.Ref[*spec.VectorIndex]{ID: "notes", To: vectorIndex()}, Mode: "vector"}, indexEnv(l, x, m))
		row := driveRows(t, step, l.row(map[string]any{"query": "a"}))[0]
		if row.Err == nil || !strings.HasSuffix(row.Err.Err.Error(), want) {
			t.Errorf("the step: %v", row.Err)
		}
		search, err := steps.NewIndexTool(&spec.IndexTool{ToolBase: spec.ToolBase{ID: "find", Name: "find"}, Mode: "vector", TopK: 1}, x, m)
		testkit.Must(t, err)
		if _, err := search.Call(t.Context(), map[string]any{"query": "a"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the tool: %v", err)
		}
		if n := m.calls.Load(); n != 0 {
			t.Errorf("%d calls of the model", n)
		}
		testkit.Must(t, x.Close())
	}
}

// TestVectorSearch_OtherModel checks that an index in any store has which model made its vectors, and that a
// replaced model needs another ingest. What earlier versions have written is not written again.
func TestVectorSearch_OtherModel(t *testing.T) {
	l := declare(t, nil, "chunk: RAGChunk", "query: text", "found: list[RAGSearchResult]")
	x := newIndex(t)
	embedderOf := func(id string) *embedder {
		m := &spec.EmbeddingModel{Model: spec.Model{ID: id, Provider: "mock"}, Dimensions: 16}
		return &embedder{Embedder: mock.NewEmbedder(m, mock.Options{})}
	}
	fill := func(m *embedder) steps.IndexCounts {
		step := build(t, upsertStep(l, vectorIndex(), "chunk"), indexEnv(l, x, m))
		driveRows(t, step, chunkRows(l, chunk("1", "d", "the parcel"), chunk("2", "d", "a letter"))...)
		return counts(step)
	}
	find := func(m *embedder) error {
		step := build(t, &spec.VectorSearch{StepBase: l.base("step", []string{"query"}, []string{"found"}), Index: spec.Ref[*spec.VectorIndex]{ID: "notes", To: vectorIndex()}, Mode: "vector"}, indexEnv(l, x, m))
		if row := driveRows(t, step, l.row(map[string]any{"query": "parcel"}))[0]; row.Err != nil {
			return row.Err.Err
		}
		return nil
	}
	one, other := embedderOf("one"), embedderOf("other")
	fill(one)
	testkit.Must(t, find(one))
	var failed *index.OtherModelError
	if err := find(other); !errors.As(err, &failed) || failed.Stored != "mock/one/16" || failed.Searched != "mock/other/16" {
		t.Errorf("got %v", err)
	}
	if got := fill(other); got.Written != 2 {
		t.Errorf("%d chunks are written with the other model", got.Written)
	}
	testkit.Must(t, find(other))
	if err := find(one); !errors.As(err, &failed) {
		t.Errorf("got %v", err)
	}
	for id, e := range x.entries { // of an earlier version
		e.Hash, _, _ = strings.Cut(e.Hash, "@")
		x.entries[id] = e
	}
	testkit.Must(t, find(one))
	if got := fill(other); got.Unchanged != 2 {
		t.Errorf("%d chunks are unchanged", got.Unchanged)
	}
}

func TestDocumentSearch(t *testing.T) {
	l := declare(t, nil, "title: text", "id: text", "query: text", "found: list[SearchResult]")
	x := newIndex(t)
	env := indexEnv(l, x, nil)
	declared := &spec.DocumentIndex{IndexBase: spec.IndexBase{ID: "books"}}
	driveRows(t, build(t, upsertStep(l, declared, "title", "id"), env),
		l.row(map[string]any{"title": "go in action", "id": "b1"}), l.row(map[string]any{"title": "python", "id": "b2"}))
	s := &spec.DocumentSearch{StepBase: l.base("step", []string{"query"}, []string{"found"}), Index: spec.Ref[*spec.DocumentIndex]{ID: "books", To: declared},
		QueryArgs: map[string]any{"type": "phrase"}, Highlights: true}
	rows := driveRows(t, build(t, s, env), l.row(map[string]any{"query": "go"}), l.row(map[string]any{"query": "rust"}))
	expect(t, "results", []string{value.Text(rows[0].Values[3]), value.Text(rows[1].Values[3])},
		`[{"content":{"id":"b1","title":"go in action","highlights":["**go** in action"]},"doc_id":"b1","score":1}]`, "[]")
	if fmt.Sprint(x.query.Args) != "map[type:phrase]" || x.query.Mode != index.ByText {
		t.Errorf("%+v", x.query)
	}
}
