//go:build unix

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// The limits of the whole process for a hostile document. The time is CPU time, which
// other programs hardly change. It detects a hang; the goal of one second holds on an
// idle machine.
const (
	mostMemory = 200 << 10 // KiB
	mostTime   = 5 * time.Second
	goalTime   = time.Second
)

// build returns the real command, without the race detector: the program that QTYPE_PROGRAM names, or a new one.
func build(t testing.TB) string {
	t.Helper()
	if given := os.Getenv("QTYPE_PROGRAM"); given != "" {
		return given
	}
	if testing.Short() {
		t.Skip("SKIPPED: the command is not built in short tests")
	}
	file := filepath.Join(t.TempDir(), "qtype")
	if out, err := testkit.Command(t, "go", "build", "-ldflags=-s -w", "-o", file, "../../cmd/qtype").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// usage is the cost of a process.
type usage struct {
	code   int
	out    string
	took   time.Duration // of the processors
	memory int64         // the most at any time, in KiB
}

// measure runs a command to its end. A small process starts it, because the system
// counts the memory of the parent as that of the child.
func measure(t testing.TB, command string, args ...string) usage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // only read
	var out bytes.Buffer
	c := exec.CommandContext(ctx, "measured", append([]string{command}, args...)...)
	c.Stdout, c.Stderr, c.ExtraFiles = &out, &out, []*os.File{w}
	err = c.Run()
	_ = w.Close() // the other process writes to it
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	u := usage{code: c.ProcessState.ExitCode(), out: out.String()}
	if _, err := fmt.Fscan(r, &u.took, &u.memory); err != nil {
		t.Fatalf("%v: %s", err, u.out)
	}
	return u
}

// measured is a program that runs another one and writes its CPU time in nanoseconds and
// its memory in KiB to file descriptor 3.
func measured() {
	c := exec.Command(os.Args[1], os.Args[2:]...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	_ = c.Run() // the caller checks the output
	if used, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		fmt.Fprintln(os.NewFile(3, "usage"), int64(c.ProcessState.UserTime()+c.ProcessState.SystemTime()), used.Maxrss)
	}
	os.Exit(c.ProcessState.ExitCode())
}

// TestValidate_HostileFiles: each file that could make a reader hang or run out of
// memory is rejected with one clear error, fast and in little memory.
func TestValidate_HostileFiles(t *testing.T) {
	testkit.SkipWithRace(t)
	qtype := build(t)
	const deep = 10_000
	const free = "id: shop\nmodels: [{id: m, type: Model, provider: openai, inference_params: {x: " // any value is accepted here
	large := func(name, line string, size int64) func(string) error {
		return func(folder string) error { return writeLarge(filepath.Join(folder, name), line, size) }
	}
	text := func(files ...string) func(string) error {
		return func(folder string) error {
			for i := 0; i < len(files); i += 2 {
				if err := os.WriteFile(filepath.Join(folder, files[i]), []byte(files[i+1]), 0o600); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for _, c := range []struct {
		name string
		make func(folder string) error
		args string
		want string // the beginning of the only diagnostic, or the error
	}{
		{"an alias bomb", text("a.yaml", testkit.AliasBomb(10)), "a.yaml", "error[QT009] a.yaml:"},
		{"a file of 100 MB", large("a.yaml", "id: shop # and so on\n", 100<<20), "a.yaml", "error[QT009] a.yaml is larger than 4 MiB"},
		{"a page of 100 MB", large("a.md", "```yaml\nid: shop\nflows: []\n```\n", 100<<20), "a.md", "error[QT009] a.md is larger than 1 MiB, the limit for a page"},
		{"an include of 100 MB", func(folder string) error {
			return errors.Join(text("a.yaml", "id: shop\ndescription: !include_raw b.txt\n")(folder), large("b.txt", "text ", 100<<20)(folder))
		}, "a.yaml", "error[QT009] a.yaml:2:27: cannot include \"b.txt\": the file is larger than 4 MiB"},
		{"lists 10,000 deep", text("a.yaml", free+strings.Repeat("[", deep)+strings.Repeat("]", deep)+"}}]\n"), "a.yaml", "error[QT009] a.yaml:"},
		{"mappings 10,000 deep", text("a.yaml", free+strings.Repeat("{a: ", deep)+strings.Repeat("}", deep)+"}}]\n"), "a.yaml", "error[QT009] a.yaml:"},
		{"blocks 10,000 deep", text("a.yaml", "id: shop\ndescription:\n  "+strings.Repeat("- ", deep)+"x\n"), "a.yaml", "error[QT009] a.yaml:"},
		{"a line of 1 MB", text("a.yaml", "id: shop\ndescripton: "+strings.Repeat("x", 1<<20)+"\n"), "a.yaml", "error[QT103] a.yaml:2:1: application \"shop\" has no key \"descripton\""},
		{"an id of 1 MB", text("a.yaml", "id: shop\nmodels: ["+strings.Repeat("x", 1<<20)+"]\n"), "a.yaml", "error[QT105] a.yaml:2:10:"},
		{"an include of itself", text("a.yaml", "id: shop\nmodels: !include a.yaml\n"), "a.yaml", "error[QT007] a.yaml:2:18: files include each other in a cycle: a.yaml → a.yaml"},
		{"includes in a circle", text("a.yaml", "id: shop\nmodels: !include b.yaml\n", "b.yaml", "- !include a.yaml\n"), "a.yaml", "error[QT007] b.yaml:1:12: files include each other in a cycle: a.yaml → b.yaml → a.yaml"},
		{"an include of a circle of links", func(folder string) error {
			return errors.Join(text("a.yaml", "id: shop\nmodels: !include b.yaml\n")(folder), os.Symlink("c.yaml", filepath.Join(folder, "b.yaml")), os.Symlink("b.yaml", filepath.Join(folder, "c.yaml")))
		}, "a.yaml", "error[QT006] a.yaml:2:18: cannot include \"b.yaml\": the file is a symbolic link to itself"},
		{"a circle of links", func(folder string) error {
			return errors.Join(os.Symlink("b.yaml", filepath.Join(folder, "a.yaml")), os.Symlink("a.yaml", filepath.Join(folder, "b.yaml")))
		}, "a.yaml", "error[QT001] a.yaml is a symbolic link to itself"},
		{"folders in a circle of links", func(folder string) error {
			inner := filepath.Join(folder, "d", "e")
			return errors.Join(os.MkdirAll(inner, 0o700), os.Symlink("../..", filepath.Join(inner, "up")), text("d/a.qtype.yaml", "id: 42\n")(folder))
		}, "d", "error[QT105] d/a.qtype.yaml:1:5:"},
		{"no UTF-8", text("a.yaml", "id: shop\ndescription: \xff\xfe\n"), "a.yaml", "error[QT008] a.yaml is not valid UTF-8 text (line 2)"},
		{"a NUL byte", text("a.yaml", "id: shop\ndescription: \x00\n"), "a.yaml", "error[QT008] a.yaml is a binary file, not text"},
		{"a pipe without a writer", func(folder string) error { return syscall.Mkfifo(filepath.Join(folder, "a.yaml"), 0o600) }, "a.yaml", "error[QT001] a.yaml is not a regular file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := c.make("."); err != nil {
				t.Skip(err)
			}
			u := measure(t, qtype, "validate", c.args)
			first, _, _ := strings.Cut(u.out, "\n")
			t.Logf("%v, %d MiB: %.150s", u.took.Round(time.Millisecond), u.memory>>10, first)
			if u.code != cli.ExitFailed || !strings.HasPrefix(u.out, c.want) || strings.Count(u.out, "error[") != 1 {
				t.Errorf("status %d, want %q alone, got\n%.2000s", u.code, c.want, u.out)
			}
			if u.memory > mostMemory {
				t.Errorf("took %d MiB, more than %d", u.memory>>10, mostMemory>>10)
			}
			if u.took > mostTime {
				t.Errorf("took %v", u.took)
			} else if u.took > goalTime {
				t.Logf("over the goal of %v; is the machine busy?", goalTime)
			}
		})
	}
}

// writeLarge writes a text repeatedly, up to a size.
func writeLarge(file, line string, size int64) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	chunk := []byte(strings.Repeat(line, 1<<20/len(line)))
	for written := int64(0); written < size; written += int64(len(chunk)) {
		if _, err := out.Write(chunk); err != nil {
			return errors.Join(err, out.Close())
		}
	}
	return out.Close()
}
