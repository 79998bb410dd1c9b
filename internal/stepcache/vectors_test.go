package stepcache_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
)

// lengths is a model whose vectors have the lengths of texts; it lists the texts of its calls.
type lengths struct {
	info  model.Info
	calls [][]string
	err   error
}

func (m *lengths) Info() model.Info { return m.info }

func (m *lengths) Embed(_ context.Context, texts []string) ([][]float32, model.Usage, error) {
	m.calls = append(m.calls, texts)
	if m.err != nil {
		return nil, model.Usage{}, m.err
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = make([]float32, m.info.Dimensions)
		vectors[i][0] = float32(len(text))
	}
	return vectors, model.Usage{Input: len(texts)}, nil
}

func embed(t *testing.T, m model.Embedder, texts ...string) (firsts []float32, input int) {
	t.Helper()
	vectors, usage, err := m.Embed(t.Context(), texts)
	testkit.Must(t, err)
	for _, v := range vectors {
		firsts = append(firsts, v[0])
	}
	return firsts, usage.Input
}

func TestNewEmbedder(t *testing.T) {
	dir := t.TempDir()
	made := func(info model.Info, params string) (*lengths, model.Embedder, *stepcache.Cache) {
		c := stepcache.NewCache(dir, nil)
		m := &lengths{info: info}
		return m, stepcache.NewEmbedder(m, c, []byte(params), 1<<20), c
	}
	info := model.Info{ID: "vectors", Provider: "openai", Name: "small", Dimensions: 3}
	m, e, c := made(info, "")
	if got, input := embed(t, e, "a", "bb", "ccc"); !slices.Equal(got, []float32{1, 2, 3}) || input != 3 {
		t.Errorf("%v, %d", got, input)
	}
	if got, input := embed(t, e, "bb", "dddd", "a"); !slices.Equal(got, []float32{2, 4, 1}) || input != 1 {
		t.Errorf("%v, %d", got, input)
	}
	if fmt.Sprint(m.calls) != "[[a bb ccc] [dddd]]" {
		t.Errorf("calls %v", m.calls)
	}
	testkit.Must(t, c.Close())
	m, e, c = made(info, "") // a later process
	embed(t, e, "a", "dddd")
	if len(m.calls) != 0 {
		t.Errorf("calls %v", m.calls)
	}
	m.err = &model.Error{Message: "down"}
	if _, _, err := e.Embed(t.Context(), []string{"a", "new"}); err == nil {
		t.Error("the error of the model is lost")
	}
	testkit.Must(t, c.Close())
	for what, other := range map[string]model.Info{
		"dimensions": {ID: "vectors", Provider: "openai", Name: "small", Dimensions: 4},
		"name":       {ID: "vectors", Provider: "openai", Name: "large", Dimensions: 3},
		"server":     {ID: "vectors", Provider: "openai", Name: "small", Dimensions: 3, Endpoint: "http://other"},
	} {
		m, e, c = made(other, "")
		embed(t, e, "a")
		if len(m.calls) != 1 {
			t.Errorf("another %s has the same vectors", what)
		}
		testkit.Must(t, c.Close())
	}
	m, e, c = made(info, "user: x")
	embed(t, e, "a")
	if len(m.calls) != 1 {
		t.Error("other parameters have the same vectors")
	}
	testkit.Must(t, c.Close())
}

// TestNewEmbedder_Limit: the cache stays within its limit, and the model is called for what
// was evicted.
func TestNewEmbedder_Limit(t *testing.T) {
	c := stepcache.NewCache(t.TempDir(), nil)
	m := &lengths{info: model.Info{ID: "vectors", Dimensions: 100}}
	e := stepcache.NewEmbedder(m, c, nil, 4000) // 10 vectors
	for i := range 50 {
		embed(t, e, fmt.Sprint("text ", i))
	}
	embed(t, e, "text 49", "text 0")
	if last := m.calls[len(m.calls)-1]; !slices.Equal(last, []string{"text 0"}) {
		t.Errorf("the last call is of %v", last)
	}
	testkit.Must(t, c.Close())
}

// TestNewEmbedder_BrokenCache: the model works without its cache.
func TestNewEmbedder_BrokenCache(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.Mkdir(filepath.Join(dir, stepcache.FileName), 0o700))
	var warned []string
	c := stepcache.NewCache(dir, func(line string) { warned = append(warned, line) })
	e := stepcache.NewEmbedder(&lengths{info: model.Info{Dimensions: 1}}, c, nil, 4000)
	embed(t, e, "a")
	embed(t, e, "b")
	if len(warned) != 1 {
		t.Errorf("warnings: %q", warned)
	}
	testkit.Must(t, c.Close())
}
