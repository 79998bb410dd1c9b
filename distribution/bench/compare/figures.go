package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// figuresFile has the figures of the page, in the root of the repository.
const figuresFile = "distribution/bench/compare/figures.json"

// figures are the measurements of one run.
type figures struct {
	Workloads []*figure `json:"workloads"`
}

// figure is what was measured of one workload.
type figure struct {
	ID         string               `json:"id"`
	What       string               `json:"what"`            // the name in the table
	Short      string               `json:"short"`           // the name in the picture
	Section    string               `json:"section"`         // the part of docs/benchmarks.md with details
	Unit       string               `json:"unit"`            // one operation
	Limit      string               `json:"limit,omitempty"` // the hand-written program
	Peer       *peer                `json:"peer,omitempty"`
	Operations int                  `json:"operations"` // of a process
	CPU        map[string][]float64 `json:"cpu_ms"`     // milliseconds of the processes of a program: limit, qtype, before
}

// peer is the best other system, as measured in its section.
type peer struct {
	Name  string  `json:"name"`
	Times float64 `json:"times"` // its CPU time divided by that of qtype
}

func readFigures(path string) (*figures, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := &figures{}
	if err := json.Unmarshal(raw, all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

func (all *figures) write(path string) error {
	raw, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}

func (all *figures) find(id string) *figure {
	for _, f := range all.Workloads {
		if f.ID == id {
			return f
		}
	}
	return nil
}

// ratio returns the median of the ratios of a program to the limit within a round, 0 without a limit.
func (f *figure) ratio(program string) float64 {
	var all []float64
	for i, ms := range f.CPU[program] {
		if i < len(f.CPU["limit"]) {
			all = append(all, ms/f.CPU["limit"][i])
		}
	}
	return median(all)
}

// cost returns the time of an operation of a program, such as 14.8 µs.
func (f *figure) cost(program string) string {
	return number(1000*median(f.CPU[program])/float64(f.Operations)) + " µs"
}

// number returns a number with two or three digits.
func number(x float64) string {
	if x < 10 {
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 1, 64)
}

// cell describes a program in the table.
func (f *figure) cell(program string) string {
	switch {
	case len(f.CPU[program]) == 0:
		return "-"
	case f.Limit == "":
		return f.cost(program)
	}
	return f.cost(program) + ", " + number(f.ratio(program))
}

// table returns the table of the page. It has a column for an earlier build if one was measured.
func (all *figures) table() string {
	var b strings.Builder
	compared := slices.ContainsFunc(all.Workloads, func(f *figure) bool { return len(f.CPU["before"]) > 0 })
	before := func(cell string) string {
		if !compared {
			return ""
		}
		return " " + cell + " |"
	}
	fmt.Fprintf(&b, "| What | qtype |%s best other system | limit |\n| --- | --- |%s --- | --- |\n", before("before"), before("---"))
	for _, f := range all.Workloads {
		other, limit := "-", "-"
		if f.Peer != nil {
			other = number(f.Peer.Times) + " times qtype (" + f.Peer.Name + ")"
		}
		if f.Limit != "" {
			limit = f.cost("limit") + " (" + f.Limit + ")"
		}
		fmt.Fprintf(&b, "| [%s](%s), a %s | %s |%s %s | %s |\n", f.What, f.Section, f.Unit, f.cell("qtype"), before(f.cell("before")), other, limit)
	}
	return b.String()
}
