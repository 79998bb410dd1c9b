package auditlog_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/auditlog"
	"github.com/qtype-dev/qtype/internal/testkit"
)

type record struct {
	Writer int    `json:"writer"`
	Text   string `json:"text"`
}

// TestLog_Concurrent appends from several goroutines by two Logs of one file: every line is whole.
func TestLog_Concurrent(t *testing.T) {
	const writers, each = 8, 50
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	logs := []*auditlog.Log{auditlog.New(path), auditlog.New(path)}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for range each {
				if err := logs[w%2].Append(record{w, strings.Repeat("x", 3000)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	found := map[int]int{}
	lines := bufio.NewScanner(strings.NewReader(testkit.ReadFile(t, path)))
	for lines.Scan() {
		var r record
		testkit.Must(t, json.Unmarshal(lines.Bytes(), &r))
		found[r.Writer]++
	}
	for w := range writers {
		if found[w] != each {
			t.Errorf("writer %d has %d lines, want %d", w, found[w], each)
		}
	}
	info, err := os.Stat(path)
	testkit.Must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %s", info.Mode())
	}
}

// TestLog_TornLine appends to a file whose last line is incomplete.
func TestLog_TornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	testkit.Must(t, os.WriteFile(path, []byte(`{"writer":1,"te`), 0o600))
	testkit.Must(t, auditlog.New(path).Append(record{2, "b"}))
	if got, want := testkit.ReadFile(t, path), "{\"writer\":1,\"te\n{\"writer\":2,\"text\":\"b\"}\n"; got != want {
		t.Errorf("the file is %q, want %q", got, want)
	}
}

// TestLog_Rotated renames the file between two records.
func TestLog_Rotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log := auditlog.New(path)
	testkit.Must(t, log.Append(record{1, "a"}))
	testkit.Must(t, os.Rename(path, path+".1"))
	testkit.Must(t, log.Append(record{2, "b"}))
	if got := testkit.ReadFile(t, path); !bytes.Contains([]byte(got), []byte(`"writer":2`)) {
		t.Errorf("the new file is %q", got)
	}
}

// TestLog_Refused names what is not a regular file, and a folder that does not exist.
func TestLog_Refused(t *testing.T) {
	folder := t.TempDir()
	for path, want := range map[string]string{folder: "is not a regular file", os.DevNull: "is not a regular file", filepath.Join(folder, "none", "a"): "no such file"} {
		for _, err := range []error{auditlog.New(path).Check(), auditlog.New(path).Append(record{})} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", path, err, want)
			}
		}
	}
}

// TestLog_OtherFile refuses a file that is not a log.
func TestLog_OtherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.qtype.yaml")
	testkit.Must(t, os.WriteFile(path, []byte("id: app\n"), 0o600))
	if err := auditlog.New(path).Check(); err == nil || !strings.Contains(err.Error(), "has something else than JSON lines: use another name") {
		t.Errorf("got %v", err)
	}
	testkit.Must(t, os.WriteFile(path, []byte("{\"writer\":1}\n"), 0o600))
	testkit.Must(t, auditlog.New(path).Check())
}
