package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processCPU returns the CPU time of another process on Linux, 0 elsewhere. The time of
// each thread is read: it is more precise than the time of the process.
func processCPU(pid string) time.Duration {
	threads, _ := filepath.Glob("/proc/" + pid + "/task/*/schedstat")
	var sum int64
	for _, path := range threads {
		text, _ := os.ReadFile(path) // a thread may have ended
		if fields := strings.Fields(string(text)); len(fields) > 0 {
			n, _ := strconv.ParseInt(fields[0], 10, 64)
			sum += n
		}
	}
	return time.Duration(sum)
}

// processRSS returns the resident memory of another process in MiB on Linux, 0 elsewhere.
func processRSS(pid string) float64 {
	text, _ := os.ReadFile("/proc/" + pid + "/status")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib / 1024
		}
	}
	return 0
}
