package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the documents of the workloads are part of the program
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/records"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/value"
)

// rowsDocument is the application of the workload W3.
//
//go:embed testdata/w3.qtype.yaml
var rowsDocument string

// rowFigures is what the workload W3 prints.
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

// runRows is the workload W3: rows of a JSON lines file go through five steps
// of an app file, and one line is written for each.
func runRows(arguments []string) error {
	workers, err := strconv.Atoi(arguments[2])
	if err != nil || workers < 1 {
		return fmt.Errorf("WORKERS: %q is not a positive number", arguments[2])
	}
	app, err := openRows(workers)
	if err != nil {
		return err
	}
	began, cpu := time.Now(), cpuTime()
	rows, err := passRows(app, arguments[0], arguments[1])
	wall := time.Since(began)
	cpu = cpuTime() - cpu
	if err = errors.Join(err, app.Close(context.Background())); err != nil {
		return err
	}
	sum, err := digest(arguments[1])
	if err != nil {
		return err
	}
	each := 1 / float64(max(rows, 1))
	return json.NewEncoder(os.Stdout).Encode(rowFigures{
		Wall: float64(wall) * each, CPU: float64(cpu) * each, Rate: float64(rows) / wall.Seconds(), Check: sum,
	})
}

// openRows reads, checks and readies the document. With more than one worker
// its Decoder takes that many rows at once.
func openRows(workers int) (*runtime.App, error) {
	text := rowsDocument
	if workers > 1 {
		text = strings.Replace(text, "format: json\n", fmt.Sprintf("format: json\n        concurrency_config: {num_workers: %d}\n", workers), 1)
	}
	dir, err := os.MkdirTemp("", "rows")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "w3.qtype.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return qtype.Open(context.Background(), path, qtype.Ephemeral())
}

// passRows takes every row of the file in through the flow and writes the
// output of each as a line of the file out.
func passRows(app *runtime.App, in, out string) (rows int64, err error) {
	file, err := records.Open(in, records.Options{})
	if err != nil {
		return 0, err
	}
	defer file.Close()
	to, err := os.Create(out)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	w := bufio.NewWriterSize(to, 1<<16)
	for result, err := range app.Run(context.Background(), "main", inputs(file)) {
		if err != nil {
			return rows, err
		}
		if result.Err != nil {
			return rows, fmt.Errorf("row %d: %w", result.Number, result.Err)
		}
		line, _ := result.Get("out")
		w.WriteString(value.Text(line))
		w.WriteByte('\n')
		rows++
	}
	return rows, w.Flush()
}

// inputs are the records of a file as rows.
func inputs(file *records.Reader) func(yield func(runtime.Input) bool) {
	return func(yield func(runtime.Input) bool) {
		row := runtime.Input{Values: map[string]any{}} // one map for all rows: a run keeps none
		for rec, err := range file.All() {
			row.Err = err
			clear(row.Values)
			for i, c := range rec.Columns {
				row.Values[c] = rec.Values[i]
			}
			if !yield(row) {
				return
			}
		}
	}
}

// digest is the number of lines in a file and the sum of their hashes, which
// does not depend on their order. Other systems write a list as its items with
// commas, our templates as JSON: what is hashed is the former.
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

// plainList turns the list at the end of a line from JSON to its items with commas.
func plainList(line []byte) []byte {
	head, list, found := bytes.Cut(line, []byte(" items="))
	var items []string
	if !found || json.Unmarshal(list, &items) != nil {
		return line
	}
	return fmt.Appendf(nil, "%s items=%s", head, strings.Join(items, ", "))
}
