// Command recall measures how many of the messages that answer a question a search of a
// memory finds, and how many of them its context block retrieval brings into a window.
//
//	go run ./distribution/bench/recall [-embeddings http://HOST/v1] [-only 43,47] [-window 4000] conversations.jsonl
//	go run ./distribution/bench/recall -window 4000 -ranked ranked.jsonl conversations.jsonl
//	go run ./distribution/bench/recall -window 1000 -observations conversations.jsonl
//
// The second command measures the rankings of another system, which others.py writes: how many
// of the messages fit the window, the best first. Without -window it measures the ten best. The third command
// measures the block observations of that size.
//
// A line of the file is a conversation: {id, turns: [{id, time, speaker, text}],
// questions: [{question, evidence: [ids of turns]}]}, such as those of LoCoMo.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/spec/chat"
)

// conversation is a line of the file.
type conversation struct {
	ID        string     `json:"id"`
	Turns     []turn     `json:"turns"`
	Questions []question `json:"questions"`
}

// turn is a message of a conversation.
type turn struct {
	ID     string `json:"id"`
	Time   string `json:"time"`
	Author string `json:"speaker"`
	Text   string `json:"text"`
}

// message returns what a memory stores.
func (c *conversation) message(t *turn) chat.Message {
	msg := chat.Text(chat.User, t.Text)
	if t.Author != c.Turns[0].Author {
		msg.Role = chat.Assistant
	}
	msg.ID, msg.Name = t.ID, t.Author
	return msg
}

// question is one about a conversation, with the ids of the turns that answer it.
type question struct {
	Question string   `json:"question"`
	Evidence []string `json:"evidence"`
	// Quotes are the parts of the turns that a window must have; without them it must have all of a turn.
	Quotes []string `json:"quotes,omitempty"`
	// Outdated are turns that said something else before.
	Outdated []string `json:"outdated,omitempty"`
}

// recall returns the share of the evidence that was found.
func (q *question) recall(found func(id string) bool) float64 {
	hits := 0
	for _, id := range q.Evidence {
		if found(id) {
			hits++
		}
	}
	return float64(hits) / float64(len(q.Evidence))
}

// score is a sum over questions.
type score struct {
	recall     float64 // shares of the evidence that was found
	reciprocal float64 // 1 / rank of the first evidence
	newest     int     // questions whose evidence precedes what is outdated
	updates    int     // questions about something that changed
}

// add adds a question with the ids that were found for it, the best first.
func (s *score) add(q *question, ids []string) {
	s.recall += q.recall(func(id string) bool { return slices.Contains(ids, id) })
	if i := slices.IndexFunc(ids, func(id string) bool { return slices.Contains(q.Evidence, id) }); i >= 0 {
		s.reciprocal += 1 / float64(i+1)
	}
	if len(q.Outdated) > 0 {
		s.updates++
		i := slices.IndexFunc(ids, func(id string) bool { return slices.Contains(q.Evidence, id) || slices.Contains(q.Outdated, id) })
		if i >= 0 && slices.Contains(q.Evidence, ids[i]) {
			s.newest++
		}
	}
}

// options are the flags.
type options struct {
	url    string
	only   string
	limit  int
	window int
	ratio  float64
	topK   int
	ranked string
	floor  bool
	shape  string
	count  int
	turns  int

	observations bool
}

func main() {
	var o options
	flag.StringVar(&o.url, "embeddings", "", "the address of a server with OpenAI's API for embeddings; without it the built-in vectors of words are compared")
	flag.StringVar(&o.only, "only", "", "the ids of conversations, separated by commas")
	flag.IntVar(&o.limit, "limit", search.DefaultLimit, "messages that a search returns")
	flag.IntVar(&o.window, "window", 0, "tokens of a window that the block retrieval fills; 0 to search")
	flag.Float64Var(&o.ratio, "ratio", 0.1, "the share of the window for the newest messages")
	flag.IntVar(&o.topK, "top-k", 0, "passages that the block retrieves; 0 for as many as fit")
	flag.StringVar(&o.ranked, "ranked", "", "a file with the ranked messages of each question, by another system")
	flag.BoolVar(&o.floor, "scores", false, "print the scores of questions that a conversation answers, and of those of the next one")
	flag.BoolVar(&o.observations, "observations", false, "measure the block observations with -window tokens, whose model states the evidence of each part")
	flag.StringVar(&o.shape, "generate", "", "write conversations with long answers (long), with misspelled questions (typos), with values that change (updates), in german, polish or chinese")
	flag.IntVar(&o.count, "conversations", 6, "how many are generated")
	flag.IntVar(&o.turns, "turns", 300, "messages of each")
	flag.Parse()
	if err := run(context.Background(), o, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, path string) error {
	if o.shape != "" {
		return generate(os.Stdout, o.count, o.turns, o.shape)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	measure := o.measure
	if o.ranked != "" {
		others, err := readRankings(o.ranked)
		if err != nil {
			return err
		}
		measure = func(_ context.Context, c *conversation) (score, error) { return others.measure(c, &o) }
	}
	if o.observations {
		measure = o.observe
	}
	var sum score
	var all []conversation
	questions := 0
	for lines.Scan() {
		var c conversation
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return err
		}
		if o.only != "" && !slices.Contains(strings.Split(o.only, ","), c.ID) {
			continue
		}
		if o.floor {
			all = append(all, c)
			continue
		}
		one, err := measure(ctx, &c)
		if err != nil {
			return err
		}
		fmt.Printf("conversation %s: %d messages, ", c.ID, len(c.Turns))
		one.print(len(c.Questions))
		sum.recall, sum.reciprocal, questions = sum.recall+one.recall, sum.reciprocal+one.reciprocal, questions+len(c.Questions)
		sum.newest, sum.updates = sum.newest+one.newest, sum.updates+one.updates
	}
	if o.floor {
		return o.compareScores(ctx, all)
	}
	fmt.Print("all: ")
	sum.print(questions)
	return lines.Err()
}

func (s *score) print(questions int) {
	n := float64(max(questions, 1))
	fmt.Printf("%d questions, recall %.3f, MRR %.3f", questions, s.recall/n, s.reciprocal/n)
	if s.updates > 0 {
		fmt.Printf(", the newest statement first %.3f", float64(s.newest)/float64(s.updates))
	}
	fmt.Println()
}

// remember returns a memory with the messages of a conversation, and their texts by id.
func (o *options) remember(ctx context.Context, c *conversation) (*memory.Memory, map[string]string, error) {
	var blocks []promptcontext.Block
	if o.url != "" {
		blocks = append(blocks, promptcontext.Block{Kind: promptcontext.Retrieval, Priority: 1, TopK: o.topK, Embedder: &embedder{url: o.url}})
	} else if o.window > 0 {
		blocks = append(blocks, promptcontext.Block{Kind: promptcontext.Retrieval, Priority: 1, TopK: o.topK})
	}
	counter, err := tokenizer.For(tokenizer.Cl100k)
	if err != nil {
		return nil, nil, err
	}
	at := time.Time{}
	m, err := memory.New(memory.Config{ID: "recall", Counter: counter, Context: promptcontext.New(nil, blocks...), Now: func() time.Time { return at },
		Limits: memory.Limits{"token_limit": float64(cmp.Or(o.window, 100_000)), "chat_history_token_ratio": o.ratio, "token_flush_size": 100}}, memory.NewInProcess())
	if err != nil {
		return nil, nil, err
	}
	texts := map[string]string{}
	for i, t := range c.Turns {
		if at, err = time.Parse(timeForm, t.Time); err != nil {
			return nil, nil, err
		}
		if err := m.Append(ctx, "s", c.message(&t)); err != nil {
			return nil, nil, fmt.Errorf("turn %d: %w", i+1, err)
		}
		texts[t.ID] = t.Text
	}
	return m, texts, nil
}

// measure returns the scores of the questions of a conversation. A window has no ranks.
func (o *options) measure(ctx context.Context, c *conversation) (sum score, err error) {
	m, texts, err := o.remember(ctx, c)
	if err != nil {
		return sum, err
	}
	s := search.New(m)
	for i := range c.Questions {
		q := &c.Questions[i]
		ids, err := o.search(ctx, s, q.Question)
		if err != nil {
			return sum, err
		}
		if o.window > 0 {
			if ids, err = q.sent(ctx, m, texts); err != nil {
				return sum, err
			}
		}
		sum.add(q, ids)
	}
	return sum, nil
}

// search returns the ids of the messages that a search finds.
func (o *options) search(ctx context.Context, s *search.Searcher, question string) (ids []string, err error) {
	results, err := s.Search(ctx, search.Query{Text: question, Scope: search.Session("s"), Limit: o.limit})
	if err == nil && results.Problem != "" {
		err = fmt.Errorf("embeddings: %s", results.Problem)
	}
	for _, found := range results.Messages {
		ids = append(ids, found.ID)
	}
	return ids, err
}

// sent returns the ids of the evidence that a call with the question sends.
func (q *question) sent(ctx context.Context, m *memory.Memory, texts map[string]string) (ids []string, err error) {
	turn, err := m.Begin(ctx, "s")
	if err != nil {
		return nil, err
	}
	defer func() { _ = turn.Abort(ctx, io.EOF) }()
	if err := turn.Add(chat.Text(chat.User, q.Question)); err != nil {
		return nil, err
	}
	sent, err := turn.Window()
	if err != nil {
		return nil, err
	}
	var all strings.Builder
	for i := range sent {
		all.WriteString(sent[i].Text() + "\n")
	}
	text := oneLine(all.String())
	for i, id := range q.Evidence {
		quote := texts[id]
		if i < len(q.Quotes) {
			quote = q.Quotes[i]
		}
		if strings.Contains(text, oneLine(quote)) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// embedder is a client of a server of embeddings, which keeps vectors.
type embedder struct {
	url   string
	known map[string][]float32
}

// Name is the model.
func (*embedder) Name() (string, error) { return "all-MiniLM-L6-v2", nil }

// Embed returns the vectors of texts.
func (e *embedder) Embed(ctx context.Context, texts []string, _ bool) ([][]float32, error) {
	if e.known == nil {
		e.known = map[string][]float32{}
	}
	var missing []string
	for _, t := range texts {
		if e.known[t] == nil && !slices.Contains(missing, t) {
			missing = append(missing, t)
		}
	}
	if len(missing) > 0 {
		if err := e.request(ctx, missing); err != nil {
			return nil, err
		}
	}
	out := make([][]float32, len(texts))
	for i, t := range texts {
		out[i] = e.known[t]
	}
	return out, nil
}

func (e *embedder) request(ctx context.Context, texts []string) error {
	body, err := json.Marshal(map[string]any{"model": "all-MiniLM-L6-v2", "input": texts})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Data []struct {
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if len(answer.Data) != len(texts) {
		return fmt.Errorf("%s returned %d vectors of %d texts: HTTP %d", e.url, len(answer.Data), len(texts), resp.StatusCode)
	}
	for i, t := range texts {
		e.known[t] = answer.Data[i].Embedding
	}
	return nil
}
