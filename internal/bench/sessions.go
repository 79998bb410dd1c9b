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
	sessions     = 10_000
	ofOneSession = 20 // messages
	keptMessages = 10 // in a window
	talkers      = 2  // goroutines, each with half of the sessions
)

// storeTalkers are those of the same workload with a durable store, where each
// waits for the disk most of the time.
const storeTalkers = 64

// manySessions is the workload W2: message i of every session comes before
// message i+1 of any, and the window is read after each.
func manySessions(arguments []string) error {
	return converse(arguments[0], memory.NewInProcessWithoutHistory(), sessions, talkers)
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
	m, err := memory.New(memory.Config{ID: "w2", Policy: spec.PolicyMessageWindow, MaxMessages: keptMessages,
		Counter: contents{letters{}, func(n int) int { return n / 4 }}}, store)
	if err != nil {
		return err
	}
	all := make([]*memory.Session, n)
	for i := range all {
		all[i] = m.Session("s" + strconv.Itoa(i))
	}
	began, cpu := time.Now(), cpuTime()
	sum, err := talk(all, pool, talkers)
	if err != nil {
		return err
	}
	wall := time.Since(began)
	cpu = cpuTime() - cpu
	chars, err := charactersIn(all)
	if err != nil {
		return err
	}
	each := 1 / float64(n*ofOneSession)
	return json.NewEncoder(os.Stdout).Encode(figures{Wall: float64(wall) * each, CPU: float64(cpu) * each,
		Check: fmt.Sprintf("sum=%d chars=%d", sum, chars)})
}

// charactersIn is how many characters the windows of the sessions have.
func charactersIn(all []*memory.Session) (int, error) {
	var buffer memory.WindowBuffer
	chars := 0
	for _, one := range all {
		window, err := one.Messages(context.Background(), &buffer)
		if err != nil {
			return 0, err
		}
		chars += characters(window)
	}
	return chars, nil
}

// talk lets the talkers speak and answers the sum of the windows' sizes.
func talk(all []*memory.Session, pool []message, talkers int) (int, error) {
	sums, errs := make([]int, talkers), make([]error, talkers)
	var wg sync.WaitGroup
	for one := range talkers {
		wg.Go(func() { sums[one], errs[one] = speak(all, pool, one, talkers) })
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

// speak is one talker, who has every so-manieth session.
func speak(all []*memory.Session, pool []message, one, talkers int) (sum int, err error) {
	ctx := context.Background()
	var buffer memory.WindowBuffer
	for i := range ofOneSession {
		role := chat.User
		if i%2 == 1 {
			role = chat.Assistant
		}
		for s := one; s < len(all); s += talkers {
			text := all[s].ID() + " m" + strconv.Itoa(i) + " " + pool[(s*ofOneSession+i)%len(pool)].Content
			if err := all[s].AppendText(ctx, role, text); err != nil {
				return 0, err
			}
			window, err := all[s].Messages(ctx, &buffer)
			if err != nil {
				return 0, err
			}
			sum += len(window)
		}
	}
	return sum, nil
}
