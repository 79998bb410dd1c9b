package records_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/xuri/excelize/v2"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/records/recordstest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// What packs a file is a format of other programs.
func TestCompressed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.csv.zst")
	recordstest.ThreeRows(t.Context(), t, path)
	if tool, err := exec.LookPath("zstd"); err == nil {
		if out, err := exec.Command(tool, "-dc", path).CombinedOutput(); err != nil || string(out) != "no,n\n007,0\nö,1\n,2\n" {
			t.Errorf("zstd reads %q, %v", out, err)
		}
	}
}

func packed(t *testing.T, by, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if by == "zstd" {
		var err error
		if w, err = zstd.NewWriter(&b); err != nil {
			t.Fatal(err)
		}
	}
	_, err := io.WriteString(w, text)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCompressed_Errors(t *testing.T) {
	var lines strings.Builder
	lines.WriteString("a\n")
	for i := range 50_000 {
		fmt.Fprintf(&lines, "some text and %d more of it\n", i*7919)
	}
	long := lines.String()
	for name, c := range map[string]struct{ text, want string }{
		"cut.csv.gz":  {packed(t, "gzip", long)[:4000], "cut.csv.gz: its gzip data ends before it is complete"},
		"cut.csv.zst": {packed(t, "zstd", long)[:4000], "cut.csv.zst: its zstd data ends before it is complete"},
		"bad.csv.gz":  {strings.TrimRight(packed(t, "gzip", "a\n1\n"), "\x00") + "xxx", "bad.csv.gz: its gzip data is damaged"},
		"old.csv.bz2": {"BZh91AY&SY\x12\x34", "old.csv.bz2: is compressed with bzip2: decompress it, or use gzip or zstd"},
		"old.csv.xz":  {"\xfd7zXZ\x00\x00", "old.csv.xz: is compressed with xz: decompress it, or use gzip or zstd"},
		"empty.csv":   {packed(t, "zstd", ""), "empty.csv: the file is empty"},
		"pq.csv.gz":   {packed(t, "gzip", "PAR1xxxx"), "pq.csv.gz: is a Parquet file, not CSV: rename it to .parquet"},
	} {
		got := read(t, testkit.WriteFile(t, name, c.text))
		if len(got) == 0 || got[len(got)-1] != c.want {
			t.Errorf("%s: got %q, want %q", name, got[max(0, len(got)-1):], c.want)
		}
	}
}

func TestRemote(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary) // only for this test
	files := map[string]string{"/plain.csv": "no,n\n007,0\n", "/packed.jsonl.gz": packed(t, "gzip", `{"no": "007", "n": 0}`)}
	for _, name := range []string{"rows.jsonl", "rows.json.zst"} {
		path := filepath.Join(t.TempDir(), name)
		recordstest.ThreeRows(t.Context(), t, path)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files["/"+name] = string(raw)
	}
	book := workbook(t, func(f *excelize.File) {
		_ = f.SetSheetRow("Sheet1", "A1", &[]any{"no", "n"})
		_ = f.SetSheetRow("Sheet1", "A2", &[]any{"007", 0})
	})
	raw, err := os.ReadFile(book)
	if err != nil {
		t.Fatal(err)
	}
	files["/book.xlsx"] = string(raw)
	endless, hangs := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := files[r.URL.Path]
		switch {
		case r.URL.Path == "/hang.csv":
			fmt.Fprint(w, "no,n\n1,2\n")
			w.(http.Flusher).Flush()
			close(hangs)
			select {
			case <-endless:
			case <-r.Context().Done():
			}
		case !ok:
			http.NotFound(w, r)
		default:
			_, _ = io.WriteString(w, text)
		}
	}))
	defer server.Close()
	defer close(endless)
	for name, want := range map[string]string{
		"/plain.csv?token=s3cret": "007=0 ", "/packed.jsonl.gz": "007=0 ", "/rows.jsonl": "007=0 ö=1 =2 ", "/rows.json.zst": "007=0 ö=1 =2 ",
		"/book.xlsx": "007=0 ",
	} {
		if got, err := recordstest.Values(t.Context(), t, server.URL+name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	if _, err := recordstest.Values(t.Context(), t, server.URL+"/none.csv?token=s3cret"); err == nil || strings.Contains(err.Error(), "s3cret") ||
		!strings.HasPrefix(err.Error(), server.URL+"/none.csv: ") {
		t.Errorf("no such file: %v", err)
	}
	for address, want := range map[string]string{
		"s3://bucket/rows.csv": "s3://bucket/rows.csv: this program has no file system s3", "ftp://host/rows.csv": "ftp://host/rows.csv: ftp:// is not supported; ",
	} {
		if _, err := recordstest.Values(t.Context(), t, address); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hangs
		cancel()
	}()
	r, err := records.Open(ctx, server.URL+"/hang.csv", records.Options{})
	if err == nil { // the rows before came in one piece
		defer r.Close()
		for _, e := range r.All() {
			err = e
		}
	}
	cancel()
	if err == nil {
		t.Error("a server that hangs is waited for although the reading was cancelled")
	}
}
