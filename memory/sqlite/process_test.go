package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/sqlite"
)

// writerEnv turns the test binary into a writer: it names the file.
const writerEnv = "QTYPE_TEST_SQLITE_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		if err := writeOn(path, os.Getenv("QTYPE_TEST_NAME")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// writeOn says "name-0", "name-1", … and prints each number when it was
// acknowledged, as many as standard input has lines.
func writeOn(path, name string) error {
	store, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	m, err := memory.New(memory.Config{ID: "m", TokenLimit: 2000, FlushSize: 200, Counter: runes{}}, store)
	if err != nil {
		return err
	}
	go func() { // standard input ends when the parent does
		_, _ = bufio.NewReader(os.Stdin).ReadString(0)
		os.Exit(2)
	}()
	for i := range 200 {
		if err := say(context.Background(), m, fmt.Sprint(name, "-", i)); err != nil {
			return err
		}
		fmt.Println(i)
	}
	return store.Close()
}

// writer starts a process that writes to path.
func writer(t *testing.T, path, name string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerEnv+"="+path, "QTYPE_TEST_NAME="+name)
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// TestKill kills a writer with no warning, 20 times, at another moment each
// time: all that it acknowledged is there, in order, and nothing is half there.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	acknowledged := map[string]int{}
	for round := range 20 {
		name := fmt.Sprint("w", round)
		cmd, out := writer(t, path, name)
		for n := 0; n <= round*3 && out.Scan(); n++ {
			acknowledged[name] = n + 1
		}
		must(t, cmd.Process.Kill())
		for out.Scan() { // what it printed before the kill reached it
			acknowledged[name]++
		}
		_ = cmd.Wait() // it was killed, so it did not end well
	}
	store := open(t, path)
	defer func() { must(t, store.Close()) }()
	m := newMemory(t, store)
	found := map[string]int{}
	seq := int64(0)
	for e, err := range m.History(t.Context(), "s") {
		must(t, err)
		name, number, _ := strings.Cut(e.Message.Text(), "-")
		if seq++; e.Seq != seq || number != strconv.Itoa(found[name]) {
			t.Fatalf("entry %d says %s after %d of that writer", e.Seq, e.Message.Text(), found[name])
		}
		found[name]++
	}
	for name, n := range acknowledged {
		if got := found[name]; got != n && got != n+1 { // one more may have been on its way
			t.Errorf("%s: %d acknowledged, %d found", name, n, got)
		}
	}
	if w, err := m.Window(t.Context(), "s"); err != nil || len(w.Entries) == 0 || w.Entries[len(w.Entries)-1].Seq != seq {
		t.Errorf("the window does not end with entry %d: %v", seq, err)
	}
	t.Logf("%d messages in 20 rounds", seq)
}

// TestTwoProcesses write to one session at once; all is there once, each
// process's messages in the order in which it said them.
func TestTwoProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	names := []string{"a", "b"}
	var started []*exec.Cmd
	var outs []*bufio.Scanner
	for _, name := range names {
		cmd, out := writer(t, path, name)
		started, outs = append(started, cmd), append(outs, out)
	}
	for i, cmd := range started {
		for outs[i].Scan() {
		}
		must(t, cmd.Wait())
	}
	store := open(t, path)
	defer func() { must(t, store.Close()) }()
	next := map[string]int{}
	turns := 0
	last := ""
	for e, err := range newMemory(t, store).History(t.Context(), "s") {
		must(t, err)
		name, _, _ := strings.Cut(e.Message.Text(), "-")
		if want := fmt.Sprint(name, "-", next[name]); e.Message.Text() != want {
			t.Fatalf("entry %d says %s, want %s", e.Seq, e.Message.Text(), want)
		}
		next[name]++
		if name != last {
			turns++
		}
		last = name
	}
	for _, name := range names {
		if next[name] != 200 {
			t.Errorf("%s: %d of 200 messages", name, next[name])
		}
	}
	t.Logf("the processes took turns %d times", turns)
}
