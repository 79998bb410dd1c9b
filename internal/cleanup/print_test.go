package cleanup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/cleanup"
)

func TestParseAge(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "12h": 12 * time.Hour, "30d": 720 * time.Hour, "1.5d": 36 * time.Hour, "106751d": 106751 * 24 * time.Hour} {
		if got, err := cleanup.ParseAge(text); err != nil || got != want {
			t.Errorf("%q: got %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"d", "0d", "-1h", "2", "1w", "1h2d", "213504d", "2562047d", "9999999d"} {
		if got, err := cleanup.ParseAge(text); err == nil {
			t.Errorf("%q: got %s, want an error", text, got)
		}
	}
}

func TestWrite(t *testing.T) {
	var b strings.Builder
	p := cleanup.Plan{Items: []cleanup.Item{
		{Kind: cleanup.Memories, Where: "sqlite:memory.db", ID: "chats me", Count: 1},
		{Kind: cleanup.Journals, Where: "out.csv.qtype-journal", Bytes: 2048, InUse: true},
		{Kind: cleanup.Traces, Where: "trace\x1b.html", Bytes: 512},
	}}
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := "memories      1 message                  chats me in sqlite:memory.db\n" +
		"journals         2.0 kB                  out.csv.qtype-journal  in use: kept\n" +
		"traces            512 B                  trace�.html\n" +
		"2 items would be removed, 512 B\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := cleanup.WriteRemoved(&b, []cleanup.Removed{{Kind: cleanup.Temporary, Items: 2}}); err != nil || b.String() != "2 temporary files removed\n" {
		t.Errorf("got %q, %v", b.String(), err)
	}
	b.Reset()
	if err := cleanup.WriteRemoved(&b, nil); err != nil || b.String() != "there is nothing to remove\n" {
		t.Errorf("got %q, %v", b.String(), err)
	}
}
