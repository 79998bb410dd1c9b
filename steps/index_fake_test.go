package steps_test

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/model"
)

// fakeIndex is an index in RAM that counts what is written and can reject entries.
type fakeIndex struct {
	entries map[string]index.Entry
	puts    int
	reject  func(index.Entry) error
	err     error // of Put
	query   index.Query
}

func newIndex(testing.TB) *fakeIndex { return &fakeIndex{entries: map[string]index.Entry{}} }

func (x *fakeIndex) Put(_ context.Context, entries []index.Entry) error {
	rejected := map[string]error{}
	for _, e := range entries {
		if x.err != nil {
			return x.err
		}
		if x.reject != nil && x.reject(e) != nil {
			rejected[e.ID] = x.reject(e)
			continue
		}
		x.puts++
		x.entries[e.ID] = e
	}
	if len(rejected) > 0 {
		return &index.PutError{Rejected: rejected}
	}
	return nil
}

func (x *fakeIndex) Delete(_ context.Context, ids []string) error {
	for _, id := range ids {
		delete(x.entries, id)
	}
	return nil
}

func (x *fakeIndex) Search(_ context.Context, q index.Query) ([]index.Match, error) {
	x.query = q
	var all []index.Match
	for _, e := range x.entries {
		score := model.Similarity(q.Vector, e.Vector)
		if q.Mode == index.ByText {
			score = float64(strings.Count(e.Text, q.Text))
		}
		if (q.Filter == nil || q.Filter.Match(e.Metadata)) && score > 0 {
			m := index.Match{Entry: e, Score: score}
			if q.Highlight {
				m.Highlights = []string{strings.ReplaceAll(e.Text, q.Text, "**"+q.Text+"**")}
			}
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b index.Match) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	return all[:min(len(all), q.Limit)], nil
}

func (x *fakeIndex) Entries(_ context.Context, p index.Page) iter.Seq2[index.Entry, error] {
	return func(yield func(index.Entry, error) bool) {
		n := 0
		for _, id := range slices.Sorted(maps.Keys(x.entries)) {
			e := x.entries[id]
			if id <= p.After || p.Filter != nil && !p.Filter.Match(e.Metadata) {
				continue
			}
			if n++; p.Limit > 0 && n > p.Limit || !yield(e, nil) {
				return
			}
		}
	}
}

func (x *fakeIndex) Hashes(_ context.Context, ids []string) (map[string]string, error) {
	found := map[string]string{}
	for _, id := range ids {
		if e, ok := x.entries[id]; ok {
			found[id] = e.Hash
		}
	}
	return found, nil
}

func (x *fakeIndex) Stats(context.Context) (index.Stats, error) {
	return index.Stats{Entries: int64(len(x.entries))}, nil
}

func (x *fakeIndex) Clear(context.Context) error { clear(x.entries); return nil }

func (x *fakeIndex) Close() error { return nil }
