package servers_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/distribution/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/sharedlimit"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// callerVariable turns the test binary into a process that makes calls: the address of its store.
const callerVariable = "QTYPE_TEST_CALLER"

// window is that of the limits of tests with servers.
const window = time.Second

var callerLimits = model.Limits{Requests: 200, Tokens: 3000}

// callForever makes calls, and prints their times, until the process is killed.
func callForever(address string) error {
	opened, err := storeurl.Open(address, storeurl.Among(servers.Openers()))
	if err != nil {
		return err
	}
	q := sharedlimit.NewQuotaOf(in(opened), "key", window)
	for {
		c, err := modeltest.Reserve(context.Background(), q, callerLimits, rand.IntN(30))
		if err != nil {
			return err
		}
		fmt.Println(c.After.UnixNano(), c.Before.UnixNano(), c.Tokens)
	}
}

func TestQuota_Servers(t *testing.T) {
	t.Parallel()
	for name, newAddress := range newStores(t) {
		address, n := newAddress(), 0
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for the ends of windows
			modeltest.TestQuota(t, modeltest.Quotas{Window: window, Open: func(t testing.TB) (a, b model.Quota) {
				n++
				key := fmt.Sprint("key ", n)
				return sharedlimit.NewQuotaOf(in(openStore(t, address)), key, window), sharedlimit.NewQuotaOf(in(openStore(t, address)), key, window)
			}})
		})
	}
}

// in returns the application of the tests in a store.
func in(s store.Store) store.Application { return store.NewApplication(s, "app") }

// TestQuota_Processes: processes that are killed at any time never make more calls together
// than the limits of a window allow, and lose none of those of later windows.
func TestQuota_Processes(t *testing.T) {
	t.Parallel()
	for name, newAddress := range newStores(t) {
		address := newAddress()
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for the ends of windows
			var mu sync.Mutex
			var calls []modeltest.Call
			add := func(c modeltest.Call) {
				mu.Lock()
				defer mu.Unlock()
				calls = append(calls, c)
			}
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					for _, n := range []int{rand.IntN(300), rand.IntN(300)} {
						if err := caller(address, n, add); err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			q := sharedlimit.NewQuotaOf(in(openStore(t, address)), "key", window)
			for range 2 * callerLimits.Requests {
				c, err := modeltest.Reserve(t.Context(), q, callerLimits, 1)
				testkit.Must(t, err)
				calls = append(calls, c)
			}
			modeltest.CheckCalls(t, calls, callerLimits, window)
			t.Logf("%d calls", len(calls))
		})
	}
}

// caller starts a process that makes calls, and kills it after n of them.
func caller(address string, n int, add func(modeltest.Call)) error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), callerVariable+"="+address)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	read := 0
	for lines := bufio.NewReader(out); ; read++ {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		var after, before int64
		var tokens int
		if _, err := fmt.Sscan(line, &after, &before, &tokens); err != nil {
			return err
		}
		add(modeltest.Call{After: time.Unix(0, after), Before: time.Unix(0, before), Tokens: tokens})
		if read == n {
			if err := cmd.Process.Kill(); err != nil {
				return err
			}
		}
	}
	if err := cmd.Wait(); read <= n {
		return fmt.Errorf("the process ended early: %w", err)
	}
	return nil
}

// TestBudget_Concurrent: no change of the processes with a run is lost.
func TestBudget_Concurrent(t *testing.T) {
	for name, newAddress := range newStores(t) {
		address := newAddress()
		t.Run(name, func(t *testing.T) {
			var group sync.WaitGroup
			for partition := range 6 {
				group.Go(func() {
					b := sharedlimit.NewBudget(in(openStore(t, address)), "run")
					for n := range 20 {
						if _, err := b.Set(t.Context(), partition, n/5, sharedlimit.Spent{Calls: n%5 + 1}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			sum, err := sharedlimit.NewBudget(in(openStore(t, address)), "run").Set(t.Context(), 0, 0, sharedlimit.Spent{})
			testkit.Must(t, err)
			if sum.Calls != 120 {
				t.Errorf("%d calls, want 120", sum.Calls)
			}
		})
	}
}
