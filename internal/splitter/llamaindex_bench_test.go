//go:build unix

package splitter_test

import (
	"syscall"
	"testing"
	"time"
)

// BenchmarkLlamaIndex compares the processor time of both programs on the same texts.
func BenchmarkLlamaIndex(b *testing.B) {
	for _, j := range settings()[:5] {
		b.Run(j.Class, func(b *testing.B) {
			var jobs []job
			size := 0
			for name, text := range corpus(b) {
				j.name, j.Text = name, text
				size += len(text)
				jobs = append(jobs, j)
			}
			their := 0.0
			llamaIndex(b, jobs, func(_ job, a answer) { their += a.Seconds })
			b.ResetTimer()
			start := processorTime()
			for range b.N {
				for _, j := range jobs {
					ours(b, j)
				}
			}
			seconds := (processorTime() - start).Seconds() / float64(b.N)
			b.ReportMetric(float64(size)/1e6/seconds, "MB/s")
			b.ReportMetric(float64(size)/1e6/their, "LlamaIndex-MB/s")
			b.ReportMetric(their/seconds, "times-faster")
		})
	}
}

// processorTime returns the time that the processor has spent on this program.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
