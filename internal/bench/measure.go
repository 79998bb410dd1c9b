package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"
)

// figures is what a workload prints; all but check are for one operation.
type figures struct {
	// Wall is the elapsed time in nanoseconds.
	Wall float64 `json:"ns_op"`
	// CPU is the time of all threads, user and system, in nanoseconds.
	CPU float64 `json:"cpu_ns_op"`
	// Cold is the elapsed time in the first pass, in nanoseconds.
	Cold float64 `json:"cold_ns_op"`
	// Bytes is what was allocated.
	Bytes float64 `json:"bytes_op"`
	// Check is what the work came to.
	Check string `json:"check"`
}

// measure runs a pass of that many operations twice, takes the figures from the
// second one, and prints them.
func measure(operations int, pass func() string) error {
	began := time.Now()
	first := pass()
	cold := time.Since(began)

	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := cpuTime()
	began = time.Now()
	second := pass()
	wall := time.Since(began)
	cpu = cpuTime() - cpu
	runtime.ReadMemStats(&after)
	if first != second {
		return fmt.Errorf("the passes differ: %s, then %s", first, second)
	}
	each := 1 / float64(max(operations, 1))
	return json.NewEncoder(os.Stdout).Encode(figures{
		Wall:  float64(wall) * each,
		CPU:   float64(cpu) * each,
		Cold:  float64(cold) * each,
		Bytes: float64(after.TotalAlloc-before.TotalAlloc) * each,
		Check: second,
	})
}
