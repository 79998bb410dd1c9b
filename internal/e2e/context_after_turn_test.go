package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// slowEmbeddings is a server of embeddings whose answers to texts of messages wait until they are released.
type slowEmbeddings struct {
	*httptest.Server
	asked    chan string   // the first text of a request that waits
	released chan struct{} // closed to answer
	mu       sync.Mutex
	texts    map[string]int // how often each text was embedded
	fails    bool
}

func newSlowEmbeddings(t *testing.T) *slowEmbeddings {
	w := &slowEmbeddings{asked: make(chan string, 100), released: make(chan struct{}), texts: map[string]int{}}
	w.Server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.Close)
	return w
}

func (w *slowEmbeddings) serve(out http.ResponseWriter, r *http.Request) {
	var req struct{ Input []string }
	_ = json.NewDecoder(r.Body).Decode(&req)
	if w.fails {
		http.Error(out, `{"error":{"message":"no such model"}}`, http.StatusBadRequest)
		return
	}
	w.asked <- req.Input[0]
	select {
	case <-w.released:
	case <-r.Context().Done():
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var data []string
	for i, text := range req.Input {
		w.texts[text]++
		data = append(data, fmt.Sprintf(`{"index":%d,"embedding":[%d,1,2,3]}`, i, len(text)))
	}
	out.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(out, `{"data":[%s],"usage":{"prompt_tokens":7,"total_tokens":7}}`, strings.Join(data, ","))
}

// afterTurnApp is contextApp with a block retrieval and a store in a file.
func afterTurnApp(t *testing.T, w *contextServer, embeddings *slowEmbeddings, path string) *runtime.App {
	t.Helper()
	text := fmt.Sprintf(contextApp, w.URL, "{type: retrieval, embedding_model: finder, top_k: 2}",
		fmt.Sprintf(`provider: openai, model_id: slow-1, dimensions: 4, base_url: "%s/v1"`, embeddings.URL))
	text = strings.Replace(text, "{id: chats, ", fmt.Sprintf("{id: chats, store: %q, ", "sqlite:"+filepath.ToSlash(path)), 1)
	app, err := qtype.Open(t.Context(), writeFile(t, text))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = app.Close(context.Background()) })
	return app
}

func longQuestion(i int) map[string]any {
	return map[string]any{"message": fmt.Sprint(i, strings.Repeat(" Where is it?", 8))}
}

// halfFull is the number of turns after which the window is half full, so that messages are embedded, and none has left it.
const halfFull = 5

func untilHalfFull(t *testing.T, app *runtime.App) {
	t.Helper()
	for i := range halfFull {
		runRow(t, app, "talk", "s1", longQuestion(i))
	}
}

// TestContext_EmbedsAfterTheTurn: no turn waits for vectors of its messages. The next that needs them waits, embeds none
// twice, and reports their usage.
func TestContext_EmbedsAfterTheTurn(t *testing.T) {
	w, embeddings := newContextServer(t), newSlowEmbeddings(t)
	app := afterTurnApp(t, w, embeddings, filepath.Join(t.TempDir(), "m.db"))
	untilHalfFull(t, app)
	first := <-embeddings.asked // it waits, but no turn did
	runRow(t, app, "talk", "s1", longQuestion(halfFull))
	close(embeddings.released)
	tokens := 0
	ctx := steps.WithEvents(t.Context(), func(ev steps.Event) { tokens += ev.Input }, steps.EventUsage)
	const more = 20
	for i := range more {
		for result, err := range app.Run(ctx, "talk", singleInput("s1", longQuestion(halfFull+1+i))) {
			if testkit.Must(t, err); result.Err != nil {
				t.Fatal(result.Err)
			}
		}
	}
	testkit.Must(t, app.Close(t.Context()))
	for i := range halfFull + more + 1 {
		text := longQuestion(i)["message"].(string)
		if n := embeddings.texts[text]; i < more && n < 1 || n > 2 { // by itself and as a question
			t.Errorf("%q was embedded %d times", text, n)
		}
	}
	if embeddings.texts[first] != 1 || tokens < more*(10+7) { // the model and, at least, a question or a message
		t.Errorf("%d tokens; %q of %v", tokens, first, embeddings.texts)
	}
}

// TestContext_LeavesEmbeddingsToTheNextTurn: an application that is closed before a model has answered loses nothing.
func TestContext_LeavesEmbeddingsToTheNextTurn(t *testing.T) {
	w, embeddings := newContextServer(t), newSlowEmbeddings(t)
	path := filepath.Join(t.TempDir(), "m.db")
	app := afterTurnApp(t, w, embeddings, path)
	untilHalfFull(t, app)
	first := <-embeddings.asked
	over, cancel := context.WithCancel(t.Context())
	cancel()
	testkit.Must(t, app.Close(over))
	close(embeddings.released)
	app = afterTurnApp(t, w, embeddings, path)
	runRow(t, app, "talk", "s1", longQuestion(halfFull))
	testkit.Must(t, app.Close(t.Context()))
	if embeddings.texts[first] != 1 {
		t.Errorf("%q of %v", first, embeddings.texts)
	}
}

// TestContext_FailingEmbeddings: a failing model fails no turn.
func TestContext_FailingEmbeddings(t *testing.T) {
	w, embeddings := newContextServer(t), newSlowEmbeddings(t)
	embeddings.fails = true
	app := afterTurnApp(t, w, embeddings, filepath.Join(t.TempDir(), "m.db"))
	for i := range 20 {
		runRow(t, app, "talk", "s1", longQuestion(i))
	}
}
