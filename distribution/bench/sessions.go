package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	memoryservers "github.com/qtype-dev/qtype/distribution/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Size of the workload W2.
const (
	sessions           = 10_000
	messagesPerSession = 20
	windowMessages     = 10 // in a window
	writers            = 2  // goroutines, each with half of the sessions
)

// storeWriters is the number of goroutines with a durable store, where each mostly waits
// for the disk.
const storeWriters = 64

// manySessions is the workload W2: message i of every session precedes message i+1 of any,
// and the window is read after each.
func manySessions(arguments []string) error {
	return runSessions(arguments[0], memory.NewInProcess(), sessions, writers)
}

// storedSessions is W2 with a number of sessions in a store.
func storedSessions(arguments []string) error {
	n, err := strconv.Atoi(arguments[2])
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a positive number of sessions", arguments[2])
	}
	store, err := storeurl.Open(arguments[1], storeurl.Among(memoryservers.Openers()))
	if err != nil {
		return err
	}
	if err := runSessions(arguments[0], store, n, storeWriters); err != nil {
		return err
	}
	return store.Close()
}

// runSessions appends messages to n sessions by concurrent writers, and prints the cost.
func runSessions(path string, store memory.Store, n, writers int) error {
	pool, err := readMessages(path)
	if err != nil {
		return err
	}
	m, err := memory.New(memory.Config{ID: "w2", Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": windowMessages},
		Counter: contentCounter{byteCounter{}, func(n int) int { return n / 4 }}}, store)
	if err != nil {
		return err
	}
	ids := make([]string, n)
	for i := range ids {
		ids[i] = "s" + strconv.Itoa(i)
	}
	start, cpu := time.Now(), cpuTime()
	sum, err := runWriters(m, ids, pool, writers)
	if err != nil {
		return err
	}
	wall := time.Since(start)
	cpu = cpuTime() - cpu
	chars, err := windowCharacters(m, ids)
	if err != nil {
		return err
	}
	perMessage := 1 / float64(n*messagesPerSession)
	return json.NewEncoder(os.Stdout).Encode(figures{Wall: float64(wall) * perMessage, CPU: float64(cpu) * perMessage,
		Check: fmt.Sprintf("sum=%d chars=%d", sum, chars)})
}

// windowCharacters returns the number of characters in the windows of the sessions.
func windowCharacters(m *memory.Memory, ids []string) (int, error) {
	chars := 0
	for _, id := range ids {
		window, err := m.Window(context.Background(), id)
		if err != nil {
			return 0, err
		}
		chars += characters(window.Messages())
	}
	return chars, nil
}

// runWriters runs the writers and returns the sum of the windows' sizes.
func runWriters(m *memory.Memory, ids []string, pool []message, workers int) (int, error) {
	sums, errs := make([]int, workers), make([]error, workers)
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() { sums[worker], errs[worker] = runWriter(m, ids, pool, worker, workers) })
	}
	wg.Wait()
	sum := 0
	for i, err := range errs {
		if err != nil {
			return 0, err
		}
		sum += sums[i]
	}
	return sum, nil
}

// runWriter appends to the sessions whose index is worker modulo workers.
func runWriter(m *memory.Memory, ids []string, pool []message, worker, workers int) (sum int, err error) {
	ctx := context.Background()
	for i := range messagesPerSession {
		role := chat.User
		if i%2 == 1 {
			role = chat.Assistant
		}
		for s := worker; s < len(ids); s += workers {
			text := ids[s] + " m" + strconv.Itoa(i) + " " + pool[(s*messagesPerSession+i)%len(pool)].Content
			if err := m.Append(ctx, ids[s], chat.Message{Role: role, Blocks: []chat.Block{{Type: "text", Text: text}}}); err != nil {
				return 0, err
			}
			window, err := m.Window(ctx, ids[s])
			if err != nil {
				return 0, err
			}
			sum += len(window.Entries)
		}
	}
	return sum, nil
}
