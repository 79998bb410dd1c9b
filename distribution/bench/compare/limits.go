package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"go.yaml.in/yaml/v4"
)

// The hand-written programs do the same work as a workload without a document, types or errors
// of single rows.

// runLimit runs a hand-written program.
func runLimit(name string, arguments []string) error {
	programs := map[string]struct {
		arguments int
		run       func(arguments []string) error
	}{
		"rows":     {2, func(a []string) error { return transformRows(a[0], a[1]) }},
		"parse":    {1, func(a []string) error { return parseYAML(a[0]) }},
		"window":   {1, func(a []string) error { return slideWindow(a[0]) }},
		"sessions": {1, func(a []string) error { return fillSessions(a[0]) }},
	}
	p, known := programs[name]
	if !known || len(arguments) != p.arguments {
		return fmt.Errorf("unknown program %q, or not %d arguments", name, p.arguments)
	}
	return p.run(arguments)
}

// transformRows reads JSON lines, fills a template, reads it as JSON, takes its fields
// apart, collects the items again, and fills a second template.
func transformRows(in, out string) error {
	from, err := os.Open(in)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // only read
	to, err := os.Create(out)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(to, 1<<16)
	lines := bufio.NewScanner(from)
	for n := 1; lines.Scan(); n++ {
		var r rowInput
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		var d struct {
			User string   `json:"user"`
			Q    string   `json:"q"`
			List []string `json:"list"`
		}
		if err := json.Unmarshal([]byte(`{"user":"`+r.Name+`","q":"`+r.Q+`","list":`+r.Items+`}`), &d); err != nil {
			return err
		}
		items := make([]string, 0, len(d.List))
		items = append(items, d.List...)
		list, err := json.Marshal(items)
		if err != nil {
			return err
		}
		line, err := json.Marshal(struct {
			Row int    `json:"row"`
			Out string `json:"out"`
		}{n, "user=" + d.User + " q=" + d.Q + " items=" + string(list)})
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return to.Close()
}

// parseYAML parses a document to nodes.
func parseYAML(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var n yaml.Node
	return yaml.Unmarshal(raw, &n)
}

// note is a message of a conversation.
type note struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func readNotes(path string) (all []*note, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	for in := json.NewDecoder(f); ; {
		n := &note{}
		err := in.Decode(n)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
}

// slideWindow adds each message to a window of 4,000 tokens of four characters, and copies the
// window, as programs do that pass it on. It does so twice, as the workload of qtype.
func slideWindow(path string) error {
	all, err := readNotes(path)
	if err != nil {
		return err
	}
	read := 0
	for range 2 {
		var window []*note
		size := 0
		for _, n := range all {
			window, size = append(window, n), size+len(n.Content)/4
			for size > 4000 {
				size -= len(window[0].Content) / 4
				window = window[1:]
			}
			read += len(append([]*note(nil), window...))
		}
	}
	fmt.Println(read)
	return nil
}

// fillSessions adds 20 messages to each of 10,000 sessions, keeps all of them, and copies the
// newest ten after each.
func fillSessions(path string) error {
	const writers, window = 2, 10
	all, err := readNotes(path)
	if err != nil {
		return err
	}
	sessions := make([][]*note, manySessions)
	var running sync.WaitGroup
	var mu [64]sync.Mutex
	sums := make([]int, writers)
	for w := range writers {
		running.Go(func() {
			for i := range perSession {
				for s := w; s < manySessions; s += writers {
					n := &note{"user", "s" + strconv.Itoa(s) + " m" + strconv.Itoa(i) + " " + all[(s*perSession+i)%len(all)].Content}
					mu[s%len(mu)].Lock()
					sessions[s] = append(sessions[s], n)
					newest := sessions[s][max(len(sessions[s])-window, 0):]
					sums[w] += len(append([]*note(nil), newest...))
					mu[s%len(mu)].Unlock()
				}
			}
		})
	}
	running.Wait()
	fmt.Println(sums)
	return nil
}
