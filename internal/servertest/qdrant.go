package servertest

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
)

// MountQdrant adds the part of the protocol of Qdrant that examples of QType (Python) use to a server, with an empty store.
func MountQdrant(mux *http.ServeMux) {
	(&fakeQdrant{sizes: map[string]any{}, points: map[string]map[string]point{}}).mount(mux)
}

// point is a point of Qdrant.
type point struct {
	ID      string               `json:"id"`
	Vector  map[string][]float64 `json:"vector"`
	Payload map[string]any       `json:"payload"`
}

// fakeQdrant has the part of Qdrant's REST API that writing and searching chunks needs.
type fakeQdrant struct {
	lock   sync.Mutex
	sizes  map[string]any              // parameters of the vectors, by collection
	points map[string]map[string]point // by collection and id
}

func (q *fakeQdrant) mount(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		send(w, map[string]any{"title": "fakeQdrant", "version": "1.15.0"})
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

func (q *fakeQdrant) describe(name string) any {
	if q.sizes[name] == nil {
		return nil
	}
	return map[string]any{"status": "green", "optimizer_status": "ok", "points_count": len(q.points[name]), "segments_count": 1, "payload_schema": map[string]any{},
		"config": map[string]any{"params": map[string]any{"vectors": q.sizes[name]}, "hnsw_config": map[string]any{"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
			"optimizer_config": map[string]any{"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000, "default_segment_number": 0, "flush_interval_sec": 5},
			"wal_config":       map[string]any{"wal_capacity_mb": 32, "wal_segments_ahead": 0}}}
}

func (q *fakeQdrant) create(name string, body []byte) any {
	var b struct {
		Vectors any `json:"vectors"`
	}
	if json.Unmarshal(body, &b) != nil || b.Vectors == nil {
		return nil
	}
	q.sizes[name], q.points[name] = b.Vectors, map[string]point{}
	return true
}

func (q *fakeQdrant) upsert(name string, body []byte) any {
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
func (q *fakeQdrant) nearest(name string, body []byte) any {
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

// send writes a value as JSON.
func send(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
