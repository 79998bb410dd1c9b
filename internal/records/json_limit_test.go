package records_test

import (
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestJSON_LongValue: a value that is too long is an error before it fills the memory. The
// record before it is read.
func TestJSON_LongValue(t *testing.T) {
	testkit.SkipWithRace(t)
	path := filepath.Join(t.TempDir(), "rows.json.gz")
	f, err := os.Create(path)
	testkit.Must(t, err)
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	testkit.Must(t, err)
	part := strings.Repeat("x", 1<<20)
	_, err = z.Write([]byte("[{\"a\": 1},\n{\"a\": \""))
	for range 130 {
		_, werr := z.Write([]byte(part))
		err = errors.Join(err, werr)
	}
	testkit.Must(t, errors.Join(err, z.Close(), f.Close()))

	r, err := records.Open(t.Context(), path, records.Options{})
	testkit.Must(t, err)
	defer r.Close()
	read := 0
	for _, err = range r.All() {
		if err != nil {
			break
		}
		read++
	}
	var file *records.FileError
	if !errors.As(err, &file) || file.Reason != "a JSON value is longer than 64 MB" || file.Line != 2 || read != 1 {
		t.Errorf("%d records, then %v", read, err)
	}
}
