package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// chats is a conversation with a memory on a server.
const chats = `id: chats
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "%s/v1"}]
stores: [{id: db, type: postgres, url: "%s"}]
memories: [{id: talk, policy: message_window, max_messages: 20, store: db}]
flows:
  - id: chat
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, memory: talk, inputs: [message], outputs: [answer]}]
`

// measured returns the number of rows of TestTemporal_Measured, and of the turns of each level.
func measured(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("QTYPE_TEMPORAL_MEASURED"))
	if err != nil {
		t.Skip("SKIPPED: set QTYPE_TEMPORAL_MEASURED to a number of rows")
	}
	return n
}

// TestTemporal_Measured prints the turns a second of a server that runs them itself and of one with a worker, one after the other in
// each round, and what a row of a run costs whose call takes 50 ms: make measure-temporal.
func TestTemporal_Measured(t *testing.T) {
	n := measured(t)
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		time.Sleep(20 * time.Millisecond) // as a fast model
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(model.Close)
	db, err := servertest.Postgres()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, db.Close()) })
	c := newCluster(t, fmt.Sprintf(chats, model.URL, db.URL()), "")
	for name, value := range map[string]string{"OPENAI_API_KEY": "x", "NO_PROXY": "*", "TEMPORAL_ADDRESS": c.server.Address()} {
		t.Setenv(name, value)
	}
	c.worker()
	servers := []*servertest.Replica{
		servertest.Serve(t, c.dir, "--log-level", "error"),
		servertest.Serve(t, c.dir, "--log-level", "error", "--engine", "temporal"),
	}
	fmt.Println("| chats at once | engine | turns a second | p50 | p95 |\n| --- | --- | --- | --- | --- |")
	for round := range 3 {
		for _, clients := range []int{1, 8, 32, 200} {
			for i, engine := range []string{"local", "temporal"} {
				took, perSecond := talkToServer(t, fmt.Sprintf("%s-%d", engine, round), servers[i].URL, clients, max(n/10/clients, 3))
				p50, p95 := took[len(took)/2].Milliseconds(), took[len(took)*95/100].Milliseconds()
				fmt.Printf("| %d | %s | %.0f | %d ms | %d ms |\n", clients, engine, perSecond, p50, p95)
			}
		}
	}
}

// talkToServer lets clients talk to a server, each with turns in a session. It returns the times of turns, in order, and their rate.
func talkToServer(t *testing.T, name, url string, clients, turns int) (took []time.Duration, perSecond float64) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	turn := func(session string, number int) error {
		body := fmt.Sprintf(`{"model": "chat", "messages": [{"role": "user", "content": "%s turn %d"}]}`, session, number)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Session-Id", session)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		answer, err := io.ReadAll(resp.Body)
		if _ = resp.Body.Close(); err == nil && !strings.Contains(string(answer), fmt.Sprintf(`"answer to %s turn %d"`, session, number)) {
			err = fmt.Errorf("status %d: %s", resp.StatusCode, answer)
		}
		return err
	}
	began := time.Now()
	var wait sync.WaitGroup
	for i := range clients {
		wait.Go(func() {
			for number := range turns {
				sent := time.Now()
				err := turn(fmt.Sprintf("%s-%d-%d", name, clients, i), number)
				mu.Lock()
				if took = append(took, time.Since(sent)); err != nil && !t.Failed() {
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	slices.Sort(took)
	return took, float64(len(took)) / time.Since(began).Seconds()
}

// TestTemporal_MeasuredRows prints what the engine adds to a call of 50 ms of each row, at the defaults of a run and a worker.
func TestTemporal_MeasuredRows(t *testing.T) {
	n := measured(t)
	const call = 50 * time.Millisecond
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		time.Sleep(call)
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(model.Close)
	var input strings.Builder
	input.WriteString("text\n")
	for i := range n {
		fmt.Fprintf(&input, "message %d\n", i)
	}
	c := newCluster(t, fmt.Sprintf(answers, model.URL), input.String())
	c.worker()
	const parallel = 4 // of a worker
	lines := strings.SplitAfter(input.String(), "\n")
	c.write("part.csv", strings.Join(lines[:1+n/parallel], "")) // as many as one of its chunks at once has
	for _, engine := range []string{"local", "temporal"} {
		file := map[string]string{"local": "part.csv", "temporal": "in.csv"}[engine]
		began := time.Now()
		if status, _, errs := c.qtype("run", "app.qtype.yaml", "-I", file, "-o", engine+".jsonl", "--engine", engine); status != 0 {
			t.Fatal(errs)
		}
		row := time.Since(began) * parallel / time.Duration(n)
		fmt.Printf("%s: %.1f ms a row, %.1f ms more than its call\n", engine, row.Seconds()*1000, (row-call).Seconds()*1000)
	}
}
