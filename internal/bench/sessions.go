package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/storeurl"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The size of the workload W2.
const (
	sessions           = 10_000
	messagesPerSession = 20
	keptMessages       = 10 // in a window
	talkers            = 2  // goroutines, each with half of the sessions
)

// storeTalkers are those of the same workload with a durable store, where each
// waits for the disk most of the time.
const storeTalkers = 64

// manySessions is the workload W2: message i of every session comes before
// message i+1 of any, and the window is read after each.
func manySessions(arguments []string) error {
	return converse(arguments[0], memory.NewInProcess(), sessions, talkers)
}

// storedSessions is W2 with fewer sessions in the store at an address.
func storedSessions(arguments []string) error {
	n, err := strconv.Atoi(arguments[2])
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a positive number of sessions", arguments[2])
	}
	store, err := storeurl.Open(arguments[1])
	if err != nil {
		return err
	}
	if err := converse(arguments[0], store, n, storeTalkers); err != nil {
		return err
	}
	return store.Close()
}

// converse lets so many talkers speak in n sessions, and prints what it cost.
func converse(path string, store memory.Store, n, talkers int) error {
	pool, err := readMessages(path)
	if err != nil {
		return err
	}
	m, err := memory.New(memory.Config{ID: "w2", Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": float64(keptMessages)},
		Counter: contents{letters{}, func(n int) int { return n / 4 }}}, store)
	if err != nil {
		return err
	}
	ids := make([]string, n)
	for i := range ids {
		ids[i] = "s" + strconv.Itoa(i)
	}
	began, cpu := time.Now(), cpuTime()
	sum, err := talk(m, ids, pool, talkers)
	if err != nil {
		return err
	}
	wall := time.Since(began)
	cpu = cpuTime() - cpu
	chars, err := windowCharacters(m, ids)
	if err != nil {
		return err
	}
	each := 1 / float64(n*messagesPerSession)
	return json.NewEncoder(os.Stdout).Encode(figures{Wall: float64(wall) * each, CPU: float64(cpu) * each,
		Check: fmt.Sprintf("sum=%d chars=%d", sum, chars)})
}

// windowCharacters is how many characters the windows of the sessions have.
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

// talk runs the workers and returns the sum of the windows' sizes.
func talk(m *memory.Memory, ids []string, pool []message, workers int) (int, error) {
	sums, errs := make([]int, workers), make([]error, workers)
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() { sums[worker], errs[worker] = speak(m, ids, pool, worker, workers) })
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

// speak is one worker, which has every session whose index is worker modulo workers.
func speak(m *memory.Memory, ids []string, pool []message, worker, workers int) (sum int, err error) {
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
