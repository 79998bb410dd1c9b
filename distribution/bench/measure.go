package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"
)

// figures is the output of a workload, per operation except for Check.
type figures struct {
	// Wall is the elapsed time in nanoseconds.
	Wall float64 `json:"ns_op"`
	// CPU is the time of all threads, user and system, in nanoseconds.
	CPU float64 `json:"cpu_ns_op"`
	// Cold is the elapsed time in the first pass, in nanoseconds.
	Cold float64 `json:"cold_ns_op"`
	// Bytes is the size of allocations.
	Bytes float64 `json:"bytes_op"`
	// Check is the result of the work.
	Check string `json:"check"`
}

// measure runs a pass of a number of operations twice, and prints the measurements of
// the second one.
func measure(operations int, pass func() string) error {
	start := time.Now()
	first := pass()
	cold := time.Since(start)

	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := cpuTime()
	start = time.Now()
	second := pass()
	wall := time.Since(start)
	cpu = cpuTime() - cpu
	runtime.ReadMemStats(&after)
	if first != second {
		return fmt.Errorf("the passes differ: %s, then %s", first, second)
	}
	perOp := 1 / float64(max(operations, 1))
	return json.NewEncoder(os.Stdout).Encode(figures{
		Wall:  float64(wall) * perOp,
		CPU:   float64(cpu) * perOp,
		Cold:  float64(cold) * perOp,
		Bytes: float64(after.TotalAlloc-before.TotalAlloc) * perOp,
		Check: second,
	})
}
