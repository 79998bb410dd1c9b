package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // for the documents of the workloads
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
)

// rowsDocument is the application of the workload W3.
//
//go:embed testdata/w3.qtype.yaml
var rowsDocument string

// rowFigures is the output of the workload W3.
type rowFigures struct {
	// Wall is the elapsed time of a row in nanoseconds.
	Wall float64 `json:"ns_op"`
	// CPU is the time of all threads for a row, user and system, in nanoseconds.
	CPU float64 `json:"cpu_ns_op"`
	// Rate is how many rows a second took.
	Rate float64 `json:"rate"`
	// Check is the number of lines written and the sum of their hashes.
	Check string `json:"check"`
}

// runRows is the workload W3: it passes rows of a JSON lines file through five steps of
// an application, and writes a line for each.
func runRows(arguments []string) error {
	workers, err := strconv.Atoi(arguments[2])
	if err != nil || workers < 1 {
		return fmt.Errorf("WORKERS: %q is not a positive number", arguments[2])
	}
	app, err := openRows()
	if err != nil {
		return err
	}
	start, cpu := time.Now(), cpuTime()
	rows, err := passRows(app, arguments[0], arguments[1], workers)
	wall := time.Since(start)
	cpu = cpuTime() - cpu
	if err = errors.Join(err, app.Close(context.Background())); err != nil {
		return err
	}
	sum, err := digest(arguments[1])
	if err != nil {
		return err
	}
	perRow := 1 / float64(max(rows, 1))
	return json.NewEncoder(os.Stdout).Encode(rowFigures{
		Wall: float64(wall) * perRow, CPU: float64(cpu) * perRow, Rate: float64(rows) / wall.Seconds(), Check: sum,
	})
}

// openRows opens the document.
func openRows() (*runtime.App, error) {
	dir, err := os.MkdirTemp("", "rows")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "w3.qtype.yaml")
	if err := os.WriteFile(path, []byte(rowsDocument), 0o600); err != nil {
		return nil, err
	}
	return qtype.Open(context.Background(), path, qtype.WithEphemeral())
}

// passRows runs the flow for every row of the file in and writes each output as a line of
// the file out. The steps have no workers, so several workers are concurrent runs of
// one App that share the file; only one worker keeps the order of lines.
func passRows(app *runtime.App, in, out string, workers int) (rows int64, err error) {
	file, err := records.Open(context.Background(), in, records.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // reading only
	to, err := os.Create(out)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	var running sync.WaitGroup
	errs := make([]error, workers)
	src, dst := &source{file: file, shared: workers > 1}, &target{file: to}
	for i := range workers {
		running.Go(func() { errs[i] = runFlow(app, src, dst) })
	}
	running.Wait()
	return dst.rows, errors.Join(errs...)
}

// runFlow is one run of the flow.
func runFlow(app *runtime.App, src *source, dst *target) error {
	var lines []byte
	rows := int64(0)
	for result, err := range app.Run(context.Background(), "main", src.inputs) {
		if err != nil {
			return err
		}
		if result.Err != nil {
			return fmt.Errorf("row %d: %w", result.Number, result.Err)
		}
		line, _ := result.Get("out")
		lines = append(value.AppendText(lines, line), '\n')
		rows++
		if len(lines) < writeSize {
			continue
		}
		if err := dst.write(lines, rows); err != nil {
			return err
		}
		lines, rows = lines[:0], 0
	}
	return dst.write(lines, rows)
}

// writeSize is the size of a write in bytes.
const writeSize = 1 << 16

// target is the output of concurrent runs.
type target struct {
	mu   sync.Mutex
	file *os.File
	rows int64
}

func (t *target) write(lines []byte, rows int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows += rows
	_, err := t.file.Write(lines)
	return err
}

// source distributes the records of one file to concurrent runs.
type source struct {
	mu     sync.Mutex
	file   *records.Reader
	shared bool // by concurrent runs
	eof    bool
}

// takeSize is how many records a run takes at once from a shared file.
const takeSize = 64

// take returns the next records, none at the end.
func (s *source) take(into []record) []record {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := 1
	if s.shared {
		size = takeSize
	}
	for len(into) < size && !s.eof {
		rec, err := s.file.Next()
		if errors.Is(err, io.EOF) {
			s.eof = true
			break
		}
		into = append(into, record{rec, err})
	}
	return into
}

// record is a record, or the error of reading it.
type record struct {
	of  records.Record
	err error
}

// inputs yields the records as rows.
func (s *source) inputs(yield func(runtime.Input) bool) {
	for taken := s.take(nil); len(taken) > 0; taken = s.take(taken[:0]) {
		for _, rec := range taken {
			if !yield(runtime.Input{Columns: rec.of.Columns, Cells: rec.of.Values, Err: rec.err}) {
				return
			}
		}
	}
}

// digest returns the number of lines in a file and the sum of their hashes, which does not
// depend on their order. Other systems write a list as items separated by commas,
// qtype's templates as JSON: the former is hashed.
func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var sum uint64
	lines := 0
	for sc := bufio.NewScanner(f); ; {
		if !sc.Scan() {
			return fmt.Sprintf("%d lines %016x", lines, sum), sc.Err()
		}
		h := fnv.New64a()
		h.Write(plainList(sc.Bytes()))
		sum += h.Sum64()
		lines++
	}
}

// plainList converts the list at the end of a line from JSON to items with commas.
func plainList(line []byte) []byte {
	head, list, found := bytes.Cut(line, []byte(" items="))
	var items []string
	if !found || json.Unmarshal(list, &items) != nil {
		return line
	}
	return fmt.Appendf(nil, "%s items=%s", head, strings.Join(items, ", "))
}
