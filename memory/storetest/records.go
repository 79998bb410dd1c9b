package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
)

// recordChecks are the checks of the records of applications.
func recordChecks() map[string]func(*testing.T, store.Store) {
	return map[string]func(*testing.T, store.Store){
		"records":                 recordChanges,
		"records, lists":          recordLists,
		"records, expiry":         recordExpiry,
		"records of applications": recordIsolation,
	}
}

func writeRecord(t *testing.T, r store.Records, id string, c store.RecordChange) {
	t.Helper()
	testkit.Must(t, r.Write(t.Context(), id, c))
}

func readRecord(t *testing.T, r store.Records, id string) store.Record {
	t.Helper()
	rec, err := r.Get(t.Context(), id)
	testkit.Must(t, err)
	return rec
}

func listRecords(t *testing.T, r store.Records, q store.RecordQuery) (ids []string) {
	t.Helper()
	for h, err := range r.List(t.Context(), q) {
		testkit.Must(t, err)
		ids = append(ids, h.ID)
	}
	return ids
}

// recordChanges: a change needs the version that it was made for, and changes the values that it names.
func recordChanges(t *testing.T, s store.Store) {
	r := store.NewApplication(s, "app").Records("run")
	if rec := readRecord(t, r, "a"); rec.Version != 0 {
		t.Fatalf("an unknown record is %+v", rec)
	}
	testkit.Must(t, r.Delete(t.Context(), "a"))
	at := time.UnixMicro(1_764_000_000_000_000).UTC()
	writeRecord(t, r, "a", store.RecordChange{Next: 7, Stored: at, Size: 3, Values: map[string][]byte{"x": []byte("1"), "y": {}}})
	for _, version := range []int64{0, 6, 8} {
		if err := r.Write(t.Context(), "a", store.RecordChange{Version: version, Next: 9}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("a change of version %d: %v, want a conflict", version, err)
		}
	}
	writeRecord(t, r, "a", store.RecordChange{Version: 7, Next: 8, Stored: at, Size: 4, Values: map[string][]byte{"x": nil, "z": []byte("3")}})
	want := store.Record{RecordHead: store.RecordHead{ID: "a", Version: 8, Stored: at, Size: 4}, Values: map[string][]byte{"y": {}, "z": []byte("3")}}
	if d := cmp.Diff(want, readRecord(t, r, "a")); d != "" {
		t.Error(d)
	}
	n, err := r.Remove(t.Context(), store.RecordHead{ID: "a", Version: 7}, store.RecordHead{ID: "none", Version: 1})
	testkit.Must(t, err)
	if n != 0 || readRecord(t, r, "a").Version != 8 {
		t.Errorf("%d records of former versions were removed", n)
	}
	n, err = r.Remove(t.Context(), store.RecordHead{ID: "a", Version: 8})
	testkit.Must(t, err)
	if n != 1 || readRecord(t, r, "a").Version != 0 {
		t.Errorf("%d records were removed", n)
	}
}

// recordLists: lists are sorted by the bytes of ids, and are read in pages.
func recordLists(t *testing.T, s store.Store) {
	r := store.NewApplication(s, "app").Records("run")
	var want []string
	for i := range 300 {
		id := "p/" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		want = append(want, id)
		writeRecord(t, r, id, store.RecordChange{Next: 1})
	}
	writeRecord(t, r, "o", store.RecordChange{Next: 1})
	writeRecord(t, r, "q", store.RecordChange{Next: 1})
	for name, test := range map[string]struct {
		query store.RecordQuery
		want  []string
	}{
		"a prefix":  {store.RecordQuery{Prefix: "p/"}, want},
		"a limit":   {store.RecordQuery{Prefix: "p/", Limit: 270}, want[:270]},
		"a place":   {store.RecordQuery{Prefix: "p/", After: want[280]}, want[281:]},
		"all after": {store.RecordQuery{After: want[299]}, []string{"q"}},
		"none":      {store.RecordQuery{Prefix: "x"}, nil},
	} {
		if got := listRecords(t, r, test.query); !slices.Equal(got, test.want) {
			t.Errorf("%s: %d records, want %d", name, len(got), len(test.want))
		}
	}
}

// recordExpiry: an expired record does not exist, and can be created again.
func recordExpiry(t *testing.T, s store.Store) {
	app := store.NewApplication(s, "app")
	r := app.Records("cache")
	now, err := app.Time(t.Context())
	testkit.Must(t, err)
	now = now.Truncate(time.Microsecond)
	writeRecord(t, r, "old", store.RecordChange{Next: 1, Expires: now.Add(-time.Second), Values: map[string][]byte{"x": []byte("1")}})
	writeRecord(t, r, "new", store.RecordChange{Next: 1, Expires: now.Add(time.Hour)})
	writeRecord(t, r, "ever", store.RecordChange{Next: 1})
	if rec := readRecord(t, r, "old"); rec.Version != 0 || rec.Values != nil {
		t.Errorf("an expired record is %+v", rec)
	}
	if got := listRecords(t, r, store.RecordQuery{}); !slices.Equal(got, []string{"ever", "new"}) {
		t.Errorf("listed: %q", got)
	}
	if got := listRecords(t, r, store.RecordQuery{Expired: true}); !slices.Equal(got, []string{"ever", "new", "old"}) {
		t.Errorf("listed with expired ones: %q", got)
	}
	writeRecord(t, r, "old", store.RecordChange{Next: 2, Expires: now.Add(time.Hour), Values: map[string][]byte{"y": []byte("2")}})
	if rec := readRecord(t, r, "old"); rec.Version != 2 || len(rec.Values) != 1 || string(rec.Values["y"]) != "2" {
		t.Errorf("a record after an expired one is %+v", rec)
	}
	writeRecord(t, r, "old", store.RecordChange{Version: 2, Next: 3, Expires: now.Add(-time.Second)})
	n, err := r.Purge(t.Context(), 10)
	testkit.Must(t, err)
	if got := listRecords(t, r, store.RecordQuery{Expired: true}); n != 1 || !slices.Equal(got, []string{"ever", "new"}) {
		t.Errorf("%d were purged, left: %q", n, got)
	}
}

// recordIsolation: nothing of an application can be seen or changed by another one, and kinds are apart.
func recordIsolation(t *testing.T, s store.Store) {
	ids := []string{"prod", "prod:run", "prod/", "prod%3A", "", "Prod", "prod\x00"}
	for i, id := range ids {
		writeRecord(t, store.NewApplication(s, id).Records("run"), "x", store.RecordChange{Next: int64(i + 1), Values: map[string][]byte{"of": []byte(id)}})
	}
	for i, id := range ids {
		app := store.NewApplication(s, id)
		rec := readRecord(t, app.Records("run"), "x")
		if rec.Version != int64(i+1) || string(rec.Values["of"]) != id {
			t.Errorf("%q has %+v", id, rec)
		}
		if got := append(listRecords(t, app.Records("input"), store.RecordQuery{}), listRecords(t, app.Records("run:x"), store.RecordQuery{})...); got != nil {
			t.Errorf("%q has records %q of other kinds", id, got)
		}
		testkit.Must(t, app.Records("run").Delete(t.Context(), "x"))
		for _, other := range ids[i+1:] {
			if got := listRecords(t, store.NewApplication(s, other).Records("run"), store.RecordQuery{}); len(got) != 1 {
				t.Errorf("%q has %q after %q deleted its record", other, got, id)
			}
		}
	}
}
