package storage_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseServer(t *testing.T) {
	s, err := storage.ParseServer("db://u:s3cret@h:1/x?a=1&prefix=p_&timeout=3s", "prefix", "default_", "db", "dbs")
	if err != nil {
		t.Fatal(err)
	}
	if s.Location != "db://h:1/x" || s.Prefix != "p_" || s.Timeout != 3*time.Second || s.DriverURL().String() != "db://u:s3cret@h:1/x?a=1" {
		t.Errorf("got %+v, %s", s, s.DriverURL())
	}
	if s, err = storage.ParseServer("dbs://h", "prefix", "default_", "db", "dbs"); err != nil || s.Prefix != "default_" || s.Timeout != storage.DefaultTimeout || s.Check() != nil {
		t.Errorf("got %+v, %v", s, err)
	}
	if s.Timeout = 0; s.Check() == nil {
		t.Error("a timeout of 0 is valid")
	}
	for address, want := range map[string]string{
		"db://u:s3cret@h:port":      "db: invalid URL: percent-encode the password",
		"http://u:s3cret@h":         "db: its URL must begin with db:// or dbs://",
		"db://u:s3cret@h?a=b;c":     "db://h: invalid parameters in its URL",
		"db://u:s3cret@h?timeout=1": "db://h: its timeout must be a duration such as 10s",
	} {
		_, err := storage.ParseServer(address, "prefix", "", "db", "dbs")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestLocation_Explain(t *testing.T) {
	location := storage.Location("db://h")
	diagnose := func(error) (store.ErrorKind, string) { return store.Denied, "no permission" }
	cause := errors.New("two\nlines")
	slow, cancel := storage.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-slow.Done()
	canceled, stop := context.WithCancel(t.Context())
	stop()
	for name, tt := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"nil":      {t.Context(), nil, ""},
		"conflict": {slow, store.ErrConflict, store.ErrConflict.Error()},
		"final":    {slow, location.Closed(), "memory store db://h: the store is closed"},
		"other":    {t.Context(), cause, "memory store db://h: no permission"},
		"slow":     {slow, cause, "memory store db://h: no answer within 1ns"},
		"canceled": {canceled, cause, context.Canceled.Error()},
	} {
		err := location.Explain(tt.ctx, tt.err, diagnose)
		if got := ""; err != nil {
			got = err.Error()
			if got != tt.want {
				t.Errorf("%s: got %s, want %s", name, got, tt.want)
			}
		} else if got != tt.want {
			t.Errorf("%s: got no error, want %s", name, tt.want)
		}
	}
	if err := location.Decode("{", &struct{}{}); err == nil || !strings.Contains(err.Error(), "cannot read a record: ") {
		t.Errorf("got %v", err)
	}
}

func TestEncode(t *testing.T) {
	r, err := storage.Encode(store.Change{
		Entries: []*store.Entry{{Message: chat.Message{ID: "a", Role: chat.User}}, {Message: chat.Message{ID: "b", Role: chat.User}}},
		Events:  []store.Event{{Kind: store.EventSet}},
	})
	if err != nil || len(r.Messages) != 2 || len(r.Events) != 1 || !strings.Contains(r.Messages[1], `"b"`) || !strings.HasPrefix(r.State, "{") {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestEntries checks that pages grow, that large messages shorten them, and that a
// reader who stops causes no further reads.
func TestEntries(t *testing.T) {
	const history = 2000
	read := func(bytes int, limits *[]int) func(int64, int) (storage.Page, error) {
		return func(from int64, limit int) (p storage.Page, err error) {
			*limits = append(*limits, limit)
			for seq := from; seq <= history && p.Rows < limit; seq++ {
				p.Entries = append(p.Entries, &store.Entry{Seq: seq})
				p.Rows, p.Bytes, p.Next = p.Rows+1, p.Bytes+bytes, seq+1
			}
			return p, nil
		}
	}
	for name, tt := range map[string]struct{ bytes, stop, pages, last int }{
		"small messages": {bytes: 100, pages: 7, last: 512},
		"large messages": {bytes: 1 << 20, stop: 80, pages: 5, last: 4},
		"first page":     {bytes: 100, stop: 10, pages: 1, last: 64},
	} {
		var limits []int
		var seqs []int64
		for e, err := range storage.Entries(store.Query{}, read(tt.bytes, &limits)) {
			if err != nil {
				t.Fatal(err)
			}
			if seqs = append(seqs, e.Seq); len(seqs) == tt.stop {
				break
			}
		}
		if want := tt.stop; want == 0 && len(seqs) != history || !slices.IsSorted(seqs) {
			t.Errorf("%s: %d entries", name, len(seqs))
		}
		if len(limits) != tt.pages || limits[len(limits)-1] != tt.last {
			t.Errorf("%s: pages of %v", name, limits)
		}
	}
	failed := errors.New("failed")
	for _, err := range storage.Entries(store.Query{}, func(int64, int) (storage.Page, error) { return storage.Page{}, failed }) {
		if !errors.Is(err, failed) {
			t.Errorf("got %v", err)
		}
	}
}
