// Command compare measures workloads of qtype next to hand-written programs for the same work,
// and an earlier build next to the current one, interleaved: each round runs each program once, in another
// order. It compares the CPU time of whole processes, which depends far less on other
// programs of the machine than elapsed time.
//
//	compare run -qtype BIN -bench BIN [-before BIN -bench-before BIN] [-rounds N] [-o FILE]
//	    measures and prints the table; with -o it updates the figures in FILE, and keeps those of other systems
//	compare page
//	    writes the table of docs/benchmarks.md and its picture from the figures
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := start(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// limitCommand is the command by which compare runs a hand-written program in a process.
const limitCommand = "limit"

// start runs the command that the arguments name, in the root of the repository.
func start(arguments []string) error {
	switch {
	case len(arguments) == 1 && arguments[0] == "page":
		return writePage(".")
	case len(arguments) > 1 && arguments[0] == limitCommand:
		return runLimit(arguments[1], arguments[2:])
	case len(arguments) > 0 && arguments[0] == "run":
		return runAll(arguments[1:])
	}
	return errors.New("usage: compare run FLAGS, or compare page")
}

// programs are the programs to compare; those before may be missing.
type programs struct{ qtype, bench, qtypeBefore, benchBefore string }

// runAll measures all workloads.
func runAll(arguments []string) error {
	var p programs
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.StringVar(&p.qtype, "qtype", "", "the command")
	flags.StringVar(&p.bench, "bench", "", "the program of distribution/bench")
	flags.StringVar(&p.qtypeBefore, "before", "", "an earlier build of the command")
	flags.StringVar(&p.benchBefore, "bench-before", "", "an earlier build of the program of distribution/bench")
	rounds := flags.Int("rounds", 3, "how often each program runs")
	out := flags.String("o", "", "the file of figures to update")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if p.qtype == "" || p.bench == "" || *rounds < 1 {
		return errors.New("run needs -qtype, -bench and at least one round")
	}
	folder, err := os.MkdirTemp("", "compare")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := writeInputs(folder); err != nil {
		return err
	}
	all, err := readFigures(cmp.Or(*out, figuresFile))
	if err != nil {
		return err
	}
	for _, w := range workloads(p) {
		if err := all.measure(w, folder, *rounds); err != nil {
			return fmt.Errorf("%s: %w", w.id, err)
		}
	}
	fmt.Print(all.table())
	if *out == "" {
		return nil
	}
	return all.write(*out)
}
