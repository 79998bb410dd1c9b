//go:build unix

package auditlog_test

import (
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/qtype-dev/qtype/internal/auditlog"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestLog_FullDisk has room for a part of a line: the record is refused, and the next one, with
// room again, is a separate line.
func TestLog_FullDisk(t *testing.T) {
	var old syscall.Rlimit
	testkit.Must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log := auditlog.New(path)
	few := old
	few.Cur = 10
	testkit.Must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &few))
	err := log.Append(record{1, "does not fit"})
	testkit.Must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
	if err == nil || !strings.Contains(err.Error(), "file too large") {
		t.Errorf("the record is accepted: %v", err)
	}
	testkit.Must(t, log.Append(record{2, "fits"}))
	lines := strings.Split(strings.TrimSpace(testkit.ReadFile(t, path)), "\n")
	if len(lines) != 2 || lines[1] != `{"writer":2,"text":"fits"}` {
		t.Errorf("the lines are %q", lines)
	}
}
