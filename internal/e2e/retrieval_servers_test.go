package e2e_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

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
	qdrant
}

func startRetrievalServer(t *testing.T, folder string) *retrievalServer {
	t.Helper()
	s := &retrievalServer{rows: []byte(testkit.ReadFile(t, filepath.Join(folder, "rows.jsonl"))), qdrant: qdrant{sizes: map[string]any{}, points: map[string]map[string]point{}}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/embeddings", s.embed)
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("GET /api/", s.hub)
	mux.HandleFunc("GET /datasets/kitchen/questions/resolve/main/rows.jsonl", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(s.rows) })
	s.mount(mux)
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

// point is a point of Qdrant.
type point struct {
	ID      string               `json:"id"`
	Vector  map[string][]float64 `json:"vector"`
	Payload map[string]any       `json:"payload"`
}

// qdrant has the part of Qdrant's REST API that writing and searching chunks needs.
type qdrant struct {
	lock   sync.Mutex
	sizes  map[string]any              // parameters of the vectors, by collection
	points map[string]map[string]point // by collection and id
}

func (q *qdrant) mount(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		send(w, map[string]any{"title": "qdrant", "version": "1.15.0"})
	})
	for pattern, answer := range map[string]func(name string, body []byte) any{
		"GET /collections/{name}/exists": func(name string, _ []byte) any { return map[string]any{"exists": q.sizes[name] != nil} },
		"GET /collections/{name}":        func(name string, _ []byte) any { return q.describe(name) },
		"PUT /collections/{name}":        q.create,
		"PUT /collections/{name}/index":  func(string, []byte) any { return map[string]any{"operation_id": 0, "status": "completed"} },
		"PUT /collections/{name}/points": q.upsert,
		"POST /collections/{name}/points": func(string, []byte) any {
			return []any{} // nothing is known before the first run
		},
		"POST /collections/{name}/points/query": q.nearest,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			q.lock.Lock()
			defer q.lock.Unlock()
			result := answer(r.PathValue("name"), body)
			if result == nil {
				w.WriteHeader(http.StatusNotFound)
			}
			send(w, map[string]any{"result": result, "status": "ok", "time": 0.0})
		})
	}
}

func (q *qdrant) describe(name string) any {
	if q.sizes[name] == nil {
		return nil
	}
	return map[string]any{"status": "green", "optimizer_status": "ok", "points_count": len(q.points[name]), "segments_count": 1, "payload_schema": map[string]any{},
		"config": map[string]any{"params": map[string]any{"vectors": q.sizes[name]}, "hnsw_config": map[string]any{"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
			"optimizer_config": map[string]any{"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000, "default_segment_number": 0, "flush_interval_sec": 5},
			"wal_config":       map[string]any{"wal_capacity_mb": 32, "wal_segments_ahead": 0}}}
}

func (q *qdrant) create(name string, body []byte) any {
	var b struct {
		Vectors any `json:"vectors"`
	}
	if json.Unmarshal(body, &b) != nil || b.Vectors == nil {
		return nil
	}
	q.sizes[name], q.points[name] = b.Vectors, map[string]point{}
	return true
}

func (q *qdrant) upsert(name string, body []byte) any {
	var b struct {
		Points []point `json:"points"`
	}
	if json.Unmarshal(body, &b) != nil || q.sizes[name] == nil {
		return nil
	}
	for _, p := range b.Points {
		q.points[name][p.ID] = p
	}
	return map[string]any{"operation_id": 0, "status": "completed"}
}

// nearest answers a search by the cosine of vectors. The client of QType (Python) sends the
// vector as {"nearest": vector}.
func (q *qdrant) nearest(name string, body []byte) any {
	var b struct {
		Query json.RawMessage `json:"query"`
		Limit int             `json:"limit"`
	}
	var nearest struct {
		Nearest []float64 `json:"nearest"`
	}
	if json.Unmarshal(body, &b) != nil || q.sizes[name] == nil {
		return nil
	}
	if json.Unmarshal(b.Query, &nearest) != nil && json.Unmarshal(b.Query, &nearest.Nearest) != nil {
		return nil
	}
	type hit struct {
		point
		Score   float64 `json:"score"`
		Version int     `json:"version"`
		Vector  any     `json:"vector"`
	}
	var hits []hit
	for _, p := range slices.SortedFunc(maps.Values(q.points[name]), func(a, b point) int { return cmp.Compare(a.ID, b.ID) }) {
		hits = append(hits, hit{point: p, Score: cosine(p.Vector[""], nearest.Nearest)})
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.Score, a.Score) })
	return map[string]any{"points": hits[:min(b.Limit, len(hits))]}
}

func cosine(a, b []float64) float64 {
	var dot, squareA, squareB float64
	for i := range a {
		dot, squareA, squareB = dot+a[i]*b[i], squareA+a[i]*a[i], squareB+b[i]*b[i]
	}
	return dot / math.Sqrt(squareA*squareB)
}
