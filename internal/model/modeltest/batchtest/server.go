// Package batchtest has a server with the batch APIs of the providers that have them, their limits and their failures. It
// also answers the same calls at once.
package batchtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Faults are what goes wrong. The zero value is a server without failures.
type Faults struct {
	Polls      int           // looks at a batch before it has ended
	Shuffled   bool          // results have another order than the calls
	Duplicates bool          // a result comes twice, and there is one of an unknown call
	CutOff     bool          // the last line of the results is not complete
	Mark       bool          // the results begin with a byte order mark
	Short      bool          // the results are not complete when they are read for the first time
	Missing    float64       // the share of calls without a result
	Unmade     float64       // the share of calls that are not made, because the batch expires
	Failing    float64       // the share of calls that fail for a time, with a status of 429 or 500
	Requests   float64       // the share of requests about batches that fail, with a status of 429 or 500
	Ambiguous  float64       // the share of creations that fail with 504 although the batch exists
	Full       int           // calls that may wait at once; a batch with more is refused as a whole; 0 for any number
	Calls      int           // the number of calls of a batch; 0 for any number
	Size       int           // of the largest batch, in bytes of calls; 0 for any size
	Behind     time.Duration // by which the clock of the server is behind that of the client
	Malformed  bool          // a batch is refused as a whole for its first call with the word malformed
	Unnamed    bool          // likewise, and the server does not say for which call
	Refused    bool          // each batch is refused as a whole
}

// Server is the server. It is safe for concurrent use.
type Server struct {
	Answer func(method string, body []byte) (status int, answer []byte) // answers a call

	open    sync.WaitGroup // requests
	mu      sync.Mutex
	faults  Faults
	random  *rand.Rand
	files   map[string][]byte
	pending map[string]bool // files that were not read yet
	batches []*batch
	paid    map[string]int  // by the ids of calls in batches
	failed  map[string]int  // likewise: how often a call had no answer
	made    []string        // the calls that were made at once
	bodies  map[string]bool // of the calls
	serial  int
	remote  Files // nil for those of the server
	watch   func(r *http.Request)
}

// batch is a batch.
type batch struct {
	id, name, method, input string
	token, output           string // of a job of Bedrock: its client token, and the address of its answers
	created                 time.Time
	calls                   []call
	looks                   int
	state                   string // in OpenAI's words
	results, refused        []byte
	betas                   string
	read                    bool // the results were read
	lost, emptied           bool // the batch is deleted, or its results are
	wrong                   int  // of the call for which it is refused; 0 for none
	format
}

// format is the format of results.
type format struct {
	line   func(id string, status int, answer []byte) []byte // the result of a call that was made
	unmade func(id string, status int, answer []byte) []byte // of one that was not, with a status of 0; nil if there is none
}

type call struct {
	id   string
	body json.RawMessage
}

// New returns a server whose failures are those of seed.
func New(seed uint64, faults Faults, answer func(method string, body []byte) (int, []byte)) *Server {
	return &Server{Answer: answer, faults: faults, random: rand.New(rand.NewPCG(seed, 1)), files: map[string][]byte{}, pending: map[string]bool{}, paid: map[string]int{}, failed: map[string]int{}, bodies: map[string]bool{}}
}

// Watch calls watch with each request.
func (s *Server) Watch(watch func(*http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = watch
}

// Wait waits until the requests so far have been answered, also those of a process that has ended.
func (s *Server) Wait() { s.open.Wait() }

// Paid returns the number of calls in batches that were answered and so cost something, and of those that were
// answered more than once.
func (s *Server) Paid() (calls, twice int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.paid {
		if calls++; n > 1 {
			twice++
		}
	}
	return calls, twice
}

// Made returns the number of calls that were made at once, and of batches.
func (s *Server) Made() (calls, batches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.made), len(s.batches)
}

// AtOnce returns the calls that were made at once.
func (s *Server) AtOnce() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.made)
}

// Canceled returns how many batches were canceled.
func (s *Server) Canceled() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.batches {
		if b.state == "cancelled" {
			n++
		}
	}
	return n
}

// Cancel cancels the batches that have not ended, as a person does.
func (s *Server) Cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.batches {
		s.cancel(b)
	}
}

// Lose deletes the batches, or only their results, as a person does, or a provider after some time.
func (s *Server) Lose(onlyResults bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.batches {
		b.emptied, b.lost = true, !onlyResults
	}
}

// LoseFirst deletes the first batch.
func (s *Server) LoseFirst() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches[0].lost = true
}

// End ends the batches that have not ended.
func (s *Server) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.batches {
		if b.state == "in_progress" {
			s.end(b)
		}
	}
}

// IsCreation reports whether a request creates a batch.
func IsCreation(r *http.Request) bool {
	creates := func(end string) bool { return strings.HasSuffix(r.URL.Path, end) }
	return r.Method == http.MethodPost && slices.ContainsFunc([]string{"/batches", "/batch/jobs", ":batchGenerateContent", "/model-invocation-job", "/batchPredictionJobs"}, creates)
}

// Betas returns the features that the headers of the batches name.
func (s *Server) Betas() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.batches {
		all = append(all, b.betas)
	}
	return all
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.open.Add(1)
	defer s.open.Done()
	w.Header().Set("Date", time.Now().Add(-s.faults.Behind).UTC().Format(http.TimeFormat))
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	watch := s.watch
	s.mu.Unlock()
	if watch != nil {
		watch(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, path := s.handler(r)
	if isBackground(r, body) {
		answer = s.createResponse
	}
	switch {
	case answer == nil:
		s.made = append(s.made, string(body))
		status, answer := s.answer(methodOf(r.URL.Path), body)
		reply(w, status, json.RawMessage(answer))
	case s.chance(s.faults.Requests):
		refuse(w, []int{429, 500, 503}[s.random.IntN(3)], "rate_limit_error", "try again")
	default:
		answer(w, r, path, body)
	}
}

// handler returns what answers a request about batches, and its path there; nil for another request.
func (s *Server) handler(r *http.Request) (answer func(w http.ResponseWriter, r *http.Request, path string, body []byte), path string) {
	for _, at := range []struct {
		prefix string
		parts  []string
		answer func(w http.ResponseWriter, r *http.Request, path string, body []byte)
	}{
		{"/v1/messages/batches", []string{""}, s.anthropic},
		{"/v1/batch", []string{"/jobs"}, s.mistral},
		{"/v1", []string{"/responses/"}, s.response},
		{"/v1", []string{"/files", "/batches"}, s.openai},
		{"/model-invocation-job", []string{""}, s.bedrock},
		{"/bucket", []string{"/"}, s.bucket},
		{vertexJobs, []string{""}, s.vertex},
		{"/v1beta", []string{"/files", "/batches"}, s.google},
		{"/upload/v1beta", []string{"/files"}, s.google},
		{"/download/v1beta", []string{"/files"}, s.google},
		{"/openai", []string{"/v1/files", "/v1/batches", "/files", "/batches"}, s.azure},
	} {
		rest, found := strings.CutPrefix(r.URL.Path, at.prefix)
		if found && slices.ContainsFunc(at.parts, func(part string) bool { return strings.HasPrefix(rest, part) }) {
			return at.answer, rest
		}
	}
	if strings.HasSuffix(r.URL.Path, ":batchGenerateContent") {
		return s.google, strings.TrimPrefix(r.URL.Path, "/v1beta")
	}
	return nil, ""
}

// methodOf returns the method of a call that is made at once, without what a cloud has before it.
func methodOf(path string) string {
	if _, method, found := strings.Cut(path, ":"); found && !strings.HasPrefix(path, "/model/") {
		return strings.Replace(strings.Replace(method, "streamRawPredict", "rawPredict", 1), "streamGenerateContent", "generateContent", 1)
	}
	if strings.HasSuffix(path, "/converse") || strings.HasSuffix(path, "/converse-stream") {
		return "Converse"
	}
	if i := strings.Index(path, "/chat/completions"); i >= 0 {
		path = path[i:]
	}
	return "/v1" + strings.TrimPrefix(strings.TrimPrefix(path, "/openai"), "/v1")
}

// answer answers a call.
func (s *Server) answer(method string, body []byte) (status int, answer []byte) {
	s.bodies[strings.Replace(string(bytes.TrimSpace(body)), `"stream":true,`, "", 1)] = true
	return s.Answer(method, body)
}

// Bodies returns the different calls so far, in their order as texts, without that they are streamed: calls in batches
// are not.
func (s *Server) Bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.bodies))
}

// isTooLarge reports whether a batch with calls exceeds a limit.
func (s *Server) isTooLarge(calls []call) bool {
	size := 0
	for _, c := range calls {
		size += len(c.body)
	}
	return s.faults.Calls > 0 && len(calls) > s.faults.Calls || s.faults.Size > 0 && size > s.faults.Size
}

func (s *Server) chance(share float64) bool { return share > 0 && s.random.Float64() < share }

func (s *Server) newID(kind string) string {
	s.serial++
	return fmt.Sprintf("%s_%04d", kind, s.serial)
}

func (s *Server) find(id string) *batch {
	for _, b := range s.batches {
		if b.id == id && !b.lost {
			return b
		}
	}
	return nil
}

// page returns the batches of a page of two, newest first, after that with an id.
func (s *Server) page(after string) (page []*batch, more bool) {
	all := slices.DeleteFunc(slices.Clone(s.batches), func(b *batch) bool { return b.lost })
	slices.Reverse(all)
	if after != "" {
		all = all[slices.IndexFunc(all, func(b *batch) bool { return b.id == after })+1:]
	}
	return all[:min(2, len(all))], len(all) > 2
}

// rendered returns batches in the form of a provider.
func rendered(all []*batch, render func(*batch) map[string]any) []any {
	made := []any{}
	for _, b := range all {
		made = append(made, render(b))
	}
	return made
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone otherwise
}

// refuse answers with an error that both protocols have.
func refuse(w http.ResponseWriter, status int, kind, message string) {
	reply(w, status, map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}})
}

// add creates a batch.
func (s *Server) add(b *batch) {
	b.created, b.state = time.Now().Add(-s.faults.Behind), "in_progress"
	s.batches = append(s.batches, b)
}

// look answers a look at a batch, which ends at some time.
func (s *Server) look(b *batch) {
	if b.state != "in_progress" {
		return
	}
	if b.wrong > 0 || s.faults.Full > 0 && len(b.calls) > s.faults.Full {
		b.state = "failed"
		return
	}
	switch i := slices.IndexFunc(b.calls, func(c call) bool { return bytes.Contains(c.body, []byte("malformed")) }); {
	case s.faults.Refused:
		b.state = "failed"
		return
	case (s.faults.Malformed || s.faults.Unnamed) && i >= 0:
		b.state, b.wrong = "failed", i+1
		return
	}
	if b.looks++; b.looks > s.faults.Polls {
		s.end(b)
	}
}

// end makes the calls of a batch, as far as they are made.
func (s *Server) end(b *batch) {
	if b.method == "generateContent" && b.unmade == nil && s.expires(b) { // without results
		b.state = "expired"
		return
	}
	b.state = "completed"
	order := make([]int, len(b.calls))
	for i := range order {
		order[i] = i
	}
	if s.faults.Shuffled {
		s.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	for _, i := range order {
		s.make(b, b.calls[i])
	}
	if s.faults.Duplicates && len(b.calls) > 0 {
		first, _, _ := bytes.Cut(b.results, []byte("\n"))
		b.results = append(append(b.results, first...), '\n')
		_, answer := s.Answer(b.method, b.calls[0].body)
		b.results = append(b.results, b.line("unknown", 200, answer)...)
	}
	if b.method == "/v1/messages" || b.method == "generateContent" || b.output != "" { // all results are in one file
		b.results, b.refused = append(b.results, b.refused...), nil
	}
	if s.faults.Mark {
		b.results = append([]byte("\xef\xbb\xbf"), b.results...)
	}
	if s.faults.CutOff {
		b.results = append(b.results, `{"custom_id":"half`...)
	}
}

// results answers with the results of a batch.
func (s *Server) results(w http.ResponseWriter, b *batch, more ...byte) {
	if b.emptied {
		refuse(w, 404, "not_found_error", "the results are gone")
		return
	}
	_, _ = w.Write(slices.Concat(s.content(b), more)) // the client has gone otherwise
}

// content returns the results of a batch.
func (s *Server) content(b *batch) []byte {
	if s.faults.Short && !b.read {
		b.read = true
		return b.results[:len(b.results)/2]
	}
	return b.results
}

// fails reports whether a call fails, at most twice.
func (s *Server) fails(c call, share float64) bool {
	if s.failed[c.id] >= 2 || !s.chance(share) {
		return false
	}
	s.failed[c.id]++
	return true
}

// expires reports whether none of the calls of a batch is made, unless one of them has failed twice.
func (s *Server) expires(b *batch) bool {
	isLast := slices.ContainsFunc(b.calls, func(c call) bool { return s.failed[c.id] >= 2 })
	if isLast || !slices.ContainsFunc(b.calls, func(call) bool { return s.chance(s.faults.Unmade) }) {
		return false
	}
	for _, c := range b.calls {
		s.failed[c.id]++
	}
	return true
}

// make makes one call.
func (s *Server) make(b *batch, c call) {
	switch format := b.line; {
	case s.fails(c, s.faults.Missing):
	case b.unmade != nil && s.fails(c, s.faults.Unmade):
		b.state = "expired"
		b.refused = append(b.refused, b.unmade(c.id, 0, nil)...)
	case s.fails(c, s.faults.Failing):
		b.refused = append(b.refused, format(c.id, []int{429, 500}[s.random.IntN(2)], []byte(`{"error":{"type":"api_error","message":"overloaded"}}`))...)
	default:
		status, answer := s.answer(b.method, c.body)
		if status != 200 {
			b.refused = append(b.refused, format(c.id, status, answer)...)
			return
		}
		s.paid[c.id]++
		b.results = append(b.results, format(c.id, status, answer)...)
	}
}

// cancel cancels a batch, and reports whether it had not ended.
func (s *Server) cancel(b *batch) bool {
	if b.state != "in_progress" {
		return false
	}
	b.state = "cancelled"
	if b.method == "/v1/messages" { // other providers have no results of these calls
		for _, c := range b.calls {
			b.refused = append(b.refused, anthropicLine(c.id, 0, nil)...)
		}
	}
	return true
}

func line(v any) []byte {
	text, _ := json.Marshal(v) // of maps and texts
	return append(text, '\n')
}
