// Command retrieval compares the embedded index with chromem-go and bleve. It is a separate module,
// so that the others are not dependencies of qtype:
//
//	go run . -vectors 100000
//	go run . -vectors 1000000 -queries 100
//	go run . -documents 20000
//
// It prints Markdown tables. The systems answer each query in turn. CPU time is that of
// the process while a system answered, with the garbage collector.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"
)

func main() {
	vectorCount := flag.Int("vectors", 0, "number of vectors to search")
	documents := flag.Int("documents", 0, "number of documents to search")
	queries := flag.Int("queries", 200, "number of queries")
	cores := flag.Int("cores", 1, "number of cores to use")
	folder := flag.String("folder", "", "folder of the indexes; by default a temporary one")
	built := flag.Bool("built", false, "the folder has the index of a million vectors that another run built")
	flag.Parse()
	runtime.GOMAXPROCS(*cores)
	if *folder == "" {
		made, err := os.MkdirTemp("", "retrieval")
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(made) }()
		*folder = made
	}
	ctx := context.Background()
	if *vectorCount > 0 {
		compareVectors(ctx, *folder, *vectorCount, *queries, *built)
	}
	if *documents > 0 {
		compareTexts(ctx, *folder, *documents, *queries)
	}
}

// must ends the program if a system fails.
func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// cpu returns the CPU time of the process.
func cpu() time.Duration {
	var u syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// system is one that answers queries.
type system struct {
	name      string
	build     func()
	search    func(query int) []string // returns the ids of the best 10
	bytes     func() int64             // on disk
	wall, cpu []time.Duration          // of each query
	buildWall time.Duration
	buildCPU  time.Duration
	found     int // ids that the first system found too
	heap      int64
}

// run builds the systems and queries them in turn.
func run(systems []*system, queries int) {
	for _, s := range systems {
		before, wall, used := heap(), time.Now(), cpu()
		s.build()
		s.buildWall, s.buildCPU = time.Since(wall), cpu()-used
		s.search(0) // reads the index to memory
		s.heap = int64(heap()) - int64(before)
		log.Printf("%s: built in %s", s.name, s.buildWall)
	}
	for q := range queries {
		var truth []string
		for i, s := range systems {
			wall, used := time.Now(), cpu()
			ids := s.search(q)
			s.wall, s.cpu = append(s.wall, time.Since(wall)), append(s.cpu, cpu()-used)
			if i == 0 {
				truth = ids
			}
			for _, id := range ids {
				if slices.Contains(truth, id) {
					s.found++
				}
			}
		}
	}
	report(systems)
}

// heap returns the memory in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func report(systems []*system) {
	fmt.Println("| system | build s | build CPU s | disk MB | heap MB | p50 ms | p99 ms | CPU ms (first 50) | CPU ms (mean) | CPU ratio | the same results |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	reference := mean(systems[0].cpu)
	for _, s := range systems {
		fmt.Printf("| %s | %.1f | %.1f | %d | %d | %.2f | %.2f | %.2f | %.2f | %.2f | %.3f |\n", s.name, s.buildWall.Seconds(), s.buildCPU.Seconds(), s.bytes()>>20, s.heap>>20,
			milliseconds(percentile(s.wall, 50)), milliseconds(percentile(s.wall, 99)), milliseconds(mean(s.cpu[:min(50, len(s.cpu))])), milliseconds(mean(s.cpu)),
			float64(mean(s.cpu))/float64(reference), float64(s.found)/float64(systems[0].found))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mean(list []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range list {
		sum += d
	}
	return sum / time.Duration(max(1, len(list)))
}

func percentile(list []time.Duration, p int) time.Duration {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b time.Duration) int { return cmp.Compare(a, b) })
	return list[min(len(list)-1, len(list)*p/100)]
}
