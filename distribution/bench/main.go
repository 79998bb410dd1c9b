// Command bench runs one workload of the benchmarks through qtype's Go API, for
// comparison with programs of other systems that do the same work. The last line on
// standard output is a JSON object with the measurements and a check value, which is
// equal for all systems that do the same work.
//
//	bench w1 FILE               messages of FILE (JSON lines) into a token window of 4,000, a token being four characters
//	bench w1bpe FILE            the same with the tokens of o200k_base
//	bench w2 FILE               20 messages to each of 10,000 sessions, message windows of 10
//	bench w2store FILE ADDRESS SESSIONS   the same in a store, such as sqlite:PATH, by 64 goroutines
//	bench bpe-count FILE        tokens of each message of FILE (JSON lines), by o200k_base
//	bench w3 FILE OUT WORKERS   rows of FILE (JSON lines) through five steps, a line of OUT each
//	bench w4 FILE N             check FILE, a document, N times
//	bench w6 ADDR               serve GET /stream on ADDR: a stream of 50 chunks from a flow
//	bench w6memory ADDR FILE    the same with a memory in FILE, a SQLite database
//	bench w6slow ADDR           the same with a model that does not answer
//	bench w6bare ADDR           serve the same paths from a handler of net/http alone
//	bench w6load URL CONNS TOTAL PID   TOTAL requests on CONNS connections; PID is the server
//	bench w6hold URL STREAMS PID       STREAMS streams that stay open: the server's memory for each
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// A workload runs with the arguments after its name, and prints its measurements.
type workload struct {
	arguments string // required arguments
	reserve   bool   // allocate heapReserve
	run       func(arguments []string) error
}

// workloads returns all workloads by name.
func workloads() map[string]workload {
	return map[string]workload{
		"w1":        {"FILE", false, windowByCharacters},
		"w1bpe":     {"FILE", false, windowByTokens},
		"bpe-count": {"FILE", false, countTokens},
		"w2":        {"FILE", false, manySessions},
		"w2store":   {"FILE ADDRESS SESSIONS", false, storedSessions},
		"w3":        {"FILE OUT WORKERS", true, runRows},
		"w4":        {"FILE N", true, checkFile},
		"w6":        {"ADDR", true, serveStreams},
		"w6memory":  {"ADDR FILE", true, serveStoredStreams},
		"w6slow":    {"ADDR", true, serveSlowStreams},
		"w6bare":    {"ADDR", false, serveBareStreams},
		"w6load":    {"URL CONNS TOTAL PID", false, loadStreams},
		"w6hold":    {"URL STREAMS PID", false, holdStreams},
	}
}

// heapReserve is the size in bytes of the heap reserve of the command qtype, for
// workloads that measure the command.
const heapReserve = 16 << 20

func main() {
	if err := start(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// start runs the workload that the arguments name.
func start(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("missing workload; usage: bench WORKLOAD ARGUMENTS")
	}
	name, rest := arguments[0], arguments[1:]
	w, ok := workloads()[name]
	if !ok {
		return fmt.Errorf("unknown workload %q", name)
	}
	if len(rest) != len(strings.Fields(w.arguments)) {
		return fmt.Errorf("usage: bench %s %s", name, w.arguments)
	}
	if w.reserve {
		reserve := make([]byte, heapReserve)
		defer runtime.KeepAlive(reserve)
	}
	if err := w.run(rest); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
