//go:build !unix

package main

import "time"

// cpuTime returns 0: the CPU time is not available here.
func cpuTime() time.Duration { return 0 }
