package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
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

// writeOn says "name-0", "name-1", … one for each line of standard input, and
// prints each number when it was acknowledged. It ends when the input does, so
// with the parent at the latest.
func writeOn(path, name string) error {
	store, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	m, err := memory.New(memory.Config{ID: "m", TokenLimit: 2000, FlushSize: 200, Counter: runes{}}, store)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for i := 0; lines.Scan(); i++ {
		if err := say(context.Background(), m, fmt.Sprint(name, "-", i)); err != nil {
			return err
		}
		fmt.Println(i)
	}
	return store.Close()
}

// process is a writer beside this one.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func writer(t *testing.T, path, name string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.Env = append(os.Environ(), writerEnv+"="+path, "QTYPE_TEST_NAME="+name)
	p.Stderr = os.Stderr
	var err error
	p.in, err = p.StdinPipe()
	must(t, err)
	out, err := p.StdoutPipe()
	must(t, err)
	p.out = bufio.NewScanner(out)
	must(t, p.Start())
	return p
}

// send asks for n messages.
func (p *process) send(t *testing.T, n int) {
	t.Helper()
	_, err := io.WriteString(p.in, strings.Repeat("\n", n))
	must(t, err)
}

// TestKill kills a writer with no warning, 20 times, at another moment each
// time: all that it acknowledged is there, in order, and nothing is half there.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	acknowledged := map[string]int{}
	for round := range 20 {
		name := fmt.Sprint("w", round)
		p := writer(t, path, name)
		p.send(t, 1000)
		for n := 0; n <= round*3 && p.out.Scan(); n++ {
			acknowledged[name] = n + 1
		}
		must(t, p.Process.Kill())
		for p.out.Scan() { // what it printed before the kill reached it
			acknowledged[name]++
		}
		_ = p.Wait() // it was killed, so it did not end well
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
	const each = 100
	both := []*process{writer(t, path, "a"), writer(t, path, "b")}
	for range each {
		for _, p := range both {
			p.send(t, 1)
		}
		for _, p := range both {
			if !p.out.Scan() {
				t.Fatal("a writer ended early")
			}
		}
	}
	for _, p := range both {
		must(t, p.in.Close())
		must(t, p.Wait())
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
	if next["a"] != each || next["b"] != each {
		t.Errorf("%v, want %d of each", next, each)
	}
	t.Logf("the processes took turns %d times", turns)
}
