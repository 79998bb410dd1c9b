package embedded_test

import (
	"database/sql"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/index/embedded"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// put writes entries with vectors of a model.
func put(t testing.TB, x *embedded.Index, model string, ids ...int) {
	t.Helper()
	var list []index.Entry
	for _, id := range ids {
		list = append(list, index.Entry{ID: strconv.Itoa(id), Text: "text", Vector: []float32{1, float32(id)}, Model: model})
	}
	testkit.Must(t, x.Put(t.Context(), list))
}

// refused returns the models with which a search fails, of those given. Check and Search must agree.
func refused(t testing.TB, x *embedded.Index, models ...string) string {
	t.Helper()
	var list []string
	for _, model := range models {
		q := index.Query{Mode: index.ByVector, Vector: []float32{1, 1}, Limit: 3, Model: model}
		_, err := x.Search(t.Context(), q)
		q.Vector = nil
		checked := x.Check(t.Context(), q)
		switch {
		case err == nil && checked == nil:
		case err == nil || checked == nil || err.Error() != checked.Error() || !strings.Contains(err.Error(), "cannot be compared with those of "+model+": ingest again"):
			t.Errorf("%s: %v, checked: %v", model, err, checked)
		default:
			list = append(list, model)
		}
	}
	return strings.Join(list, " ")
}

// TestSearch_OtherModel checks that vectors of models with the same number of dimensions are not compared.
func TestSearch_OtherModel(t *testing.T) {
	x := open(t, embedded.Options{Vectors: true})
	if got := refused(t, x, "a/m/2", "b/m/2"); got != "" {
		t.Errorf("without a file: %s", got)
	}
	for i, step := range []struct {
		change func()
		want   string
	}{
		{func() { put(t, x, "a/m/2", 1, 2, 3) }, "b/m/2 c/m/2"},
		{func() { put(t, x, "b/m/2", 1, 4) }, "a/m/2 b/m/2 c/m/2"},
		{func() { put(t, x, "b/m/2", 2) }, "a/m/2 b/m/2 c/m/2"},
		{func() { testkit.Must(t, x.Delete(t.Context(), []string{"3"})) }, "a/m/2 c/m/2"},
		{func() { put(t, x, "a/m/2", 5) }, "a/m/2 b/m/2 c/m/2"},
		{func() { put(t, x, "b/m/2", 5) }, "a/m/2 c/m/2"},
		{func() { put(t, x, "", 6) }, "a/m/2 c/m/2"},
		{func() { testkit.Must(t, x.Clear(t.Context())) }, ""},
		{func() { put(t, x, "c/m/2", 1) }, "a/m/2 b/m/2"},
	} {
		step.change()
		if got := refused(t, x, "a/m/2", "b/m/2", "c/m/2"); got != step.want {
			t.Errorf("after change %d a search is refused with %q, want %q", i, got, step.want)
		}
	}
	if _, err := x.Search(t.Context(), index.Query{Mode: index.ByText, Text: "text", Limit: 1, Model: "a/m/2"}); err != nil {
		t.Errorf("a search by text: %v", err)
	}
}

// TestSearch_ModelOfOlderFile checks a file of a version that did not record models: its entries are taken
// for those of the model that writes first.
func TestSearch_ModelOfOlderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	x := embedded.Open(embedded.Options{Path: path, Vectors: true})
	put(t, x, "", 1, 2)
	testkit.Must(t, x.Close())
	db, err := sql.Open("sqlite", path)
	testkit.Must(t, err)
	_, err = db.ExecContext(t.Context(), "DROP TABLE models; DROP TABLE languages; PRAGMA user_version = 1")
	testkit.Must(t, err)
	testkit.Must(t, db.Close())
	x = open(t, embedded.Options{Path: path, Vectors: true})
	if got := refused(t, x, "a/m/2", "b/m/2"); got != "" {
		t.Errorf("before a write: %s", got)
	}
	put(t, x, "b/m/2", 3)
	if got := refused(t, x, "a/m/2", "b/m/2"); got != "a/m/2" {
		t.Errorf("after a write: %s", got)
	}
}
