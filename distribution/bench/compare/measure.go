package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"time"
)

// measure runs the programs of a workload, interleaved, and replaces their figures.
func (all *figures) measure(w workload, folder string, rounds int) error {
	programs, err := w.programs()
	if err != nil {
		return err
	}
	f := all.find(w.id)
	if f == nil {
		return fmt.Errorf("no workload of the figures has this id")
	}
	f.Operations, f.CPU = w.operations, map[string][]float64{}
	order := []string{"limit", "qtype", "before"}
	for range rounds {
		for _, name := range order {
			if programs[name] == nil {
				continue
			}
			used, err := cpuOf(folder, programs[name])
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			f.CPU[name] = append(f.CPU[name], float64(used.Milliseconds()))
		}
		order = append(order[1:], order[0])
	}
	return nil
}

// cpuOf runs a program and returns its user and system time.
func cpuOf(folder string, arguments []string) (time.Duration, error) {
	cmd := exec.CommandContext(context.Background(), arguments[0], arguments[1:]...)
	cmd.Dir = folder
	var messages bytes.Buffer
	cmd.Stderr = &messages
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, messages.Bytes())
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// median returns the median, 0 of no values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
