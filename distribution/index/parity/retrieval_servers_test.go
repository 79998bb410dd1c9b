package parity_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// retrievalFiles writes the documents that the examples read into a folder: notes in
// subfolders, recipes and, as data set, a file in JSON Lines.
func retrievalFiles(t *testing.T, folder string) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2)) // the same texts in each run
	write := func(path, text string) {
		path = filepath.Join(folder, filepath.FromSlash(path))
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o750))
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for i := range 140 {
		path := []string{"notes", "notes/garden", "notes/garden/beds of 2026", "notes/Études"}[i%4]
		write(fmt.Sprintf("%s/note %03d.md", path, i), fmt.Sprintf("# Note %d\n\n%s\r\n- ünïcode 漢字\n", i, sentences(r, 1+i%5)))
	}
	write("notes/garden/empty.md", "")
	for _, path := range []string{"notes/.hidden.md", "notes/.git/a.md", "notes/page.txt", "notes/upper.MD.bak"} {
		write(path, "Not a note.")
	}
	for i := range 9 {
		var b strings.Builder
		fmt.Fprintf(&b, "---\ntitle: Dish %d\ntags: [%s]\n---\n", i, sentences(r, 1))
		for part := range 1 + 3*(i%3) {
			fmt.Fprintf(&b, "\n## Part %d\n\n%s\n\n\n%s\n", part, sentences(r, 5), sentences(r, 2))
		}
		write(fmt.Sprintf("recipes/dish%d.md", i), b.String())
	}
	write("recipes/shopping.txt", "Not a recipe.")
	write("recipes/old/dish.md", "A recipe in a subfolder.")
	var rows strings.Builder
	for i := range 40 {
		row, err := json.Marshal(map[string]any{"n": i, "question": "What's \"" + sentences(r, 1) + "\"?", "answer": sentences(r, 1+12*(i%3)), "odd": []any{nil, true, 1.5, "ü\n'", 1e21}})
		testkit.Must(t, err)
		rows.Write(append(row, '\n'))
	}
	write("rows.jsonl", rows.String()+"not JSON\n\n[1, 2]\n")
}

// sentences returns random sentences about food.
func sentences(r *rand.Rand, n int) string {
	words := strings.Fields("pasta tomato onion garlic basil bread flour egg milk butter cheese rice bean lentil carrot potato, cream lemon fish Dr. soup 2.5 stew oven salt; pepper oil honey café walnut")
	all := make([]string, n)
	for i := range all {
		picked := make([]string, 4+r.IntN(10))
		for k := range picked {
			picked[k] = words[r.IntN(len(words))]
		}
		all[i] = "The " + strings.Join(picked, " ") + []string{".", ".", "!", "?"}[r.IntN(4)]
	}
	return strings.Join(all, " ")
}

// retrievalServer has the models of OpenAI's protocol, a file on Hugging Face, and Qdrant.
type retrievalServer struct {
	*httptest.Server
	rows []byte // the file on Hugging Face

	mu    sync.Mutex
	chats []map[string]any // requests to the chat model
}

func startRetrievalServer(t *testing.T, folder string) *retrievalServer {
	t.Helper()
	s := &retrievalServer{rows: []byte(testkit.ReadFile(t, filepath.Join(folder, "rows.jsonl")))}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/embeddings", s.embed)
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("GET /api/", s.hub)
	mux.HandleFunc("GET /datasets/kitchen/questions/resolve/main/rows.jsonl", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(s.rows) })
	servertest.MountQdrant(mux)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() { testkit.CloseServer(s.Server) })
	return s
}

// send writes a value as JSON.
func send(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// embed answers with the number of times that words with the same hash occur. The client of
// QType (Python) replaces line ends by spaces and expects base64.
func (s *retrievalServer) embed(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Input  []string `json:"input"`
		Format string   `json:"encoding_format"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	data := make([]any, len(body.Input))
	for i, text := range body.Input {
		vector := make([]float32, 64)
		for word := range strings.FieldsSeq(strings.ToLower(text)) {
			h := fnv.New32a()
			_, _ = io.WriteString(h, word)
			vector[h.Sum32()%64]++
		}
		one := any(vector)
		if body.Format == "base64" {
			var raw bytes.Buffer
			_ = binary.Write(&raw, binary.LittleEndian, vector)
			one = base64.StdEncoding.EncodeToString(raw.Bytes())
		}
		data[i] = map[string]any{"object": "embedding", "index": i, "embedding": one}
	}
	send(w, map[string]any{"object": "list", "data": data, "model": "m", "usage": map[string]int{"prompt_tokens": 1, "total_tokens": 1}})
}

// chat answers with the number of messages that it got.
func (s *retrievalServer) chat(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.chats = append(s.chats, body)
	s.mu.Unlock()
	messages, _ := body["messages"].([]any)
	reply := map[string]any{"role": "assistant", "content": fmt.Sprintf("a reply to %d messages", len(messages))}
	send(w, map[string]any{"id": "c", "object": "chat.completion", "created": 1, "model": body["model"],
		"choices": []any{map[string]any{"index": 0, "message": reply, "finish_reason": "stop"}}, "usage": map[string]int{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
}

// hub describes the data set to the client of Hugging Face.
func (s *retrievalServer) hub(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "/tree/") {
		send(w, []any{map[string]any{"type": "file", "path": "rows.jsonl", "size": len(s.rows), "oid": "0"}})
		return
	}
	send(w, map[string]any{"id": "kitchen/questions", "sha": "0", "siblings": []any{}, "private": false, "disabled": false, "downloads": 0, "likes": 0, "tags": []any{}})
}
