package conformance_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/awsauth/awsauthtest"
	modelbedrock "github.com/qtype-dev/qtype/internal/model/bedrock"
	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

var update = flag.Bool("update", false, "rewrite docs/conformance.md, and remove from testdata/failures.txt what does not fail")

// page is the table of the rules.
const page = "../../../../docs/conformance.md"

// failures lists the cases that fail: the list may only become shorter.
const failures = "testdata/failures.txt"

// environment has the credentials of all providers.
func environment(name string) string {
	return map[string]string{
		"OPENAI_API_KEY": "key-of-openai", "ANTHROPIC_API_KEY": "key-of-anthropic", "GEMINI_API_KEY": "key-of-google", "MISTRAL_API_KEY": "key-of-mistral", "OLLAMA_API_KEY": "key-of-ollama",
		"AZURE_OPENAI_API_KEY": "key-of-azure", "AZURE_OPENAI_ENDPOINT": "https://shop.openai.azure.com",
		"AWS_BEARER_TOKEN_BEDROCK": "key-of-aws", "AWS_REGION": "us-east-1", "GOOGLE_CLOUD_PROJECT": "shop",
	}[name]
}

// trial is a case that runs: streamed or not.
type trial struct {
	conformance.Case
	t      testing.TB
	rule   conformance.Rule
	stream bool
	server *conformance.Running
	former []conformance.Verdict // of replicas that answered before
	client model.Chat
	forms  *model.SchemaForms
	system string
	list   []chat.Message
	deltas strings.Builder // of the text of the last answer
}

// name names the case within its rule.
func (c *trial) name() string {
	at := c.Provider
	if c.Server != "" {
		at += "@" + c.Server
	}
	name := strings.Join([]string{c.rule.ID, at, c.Model, c.Scenario}, " ")
	if c.API != "" {
		name += " api=" + c.API
	}
	if len(c.Params) > 0 {
		raw, err := json.Marshal(c.Params)
		testkit.Must(c.t, err)
		name += " " + string(raw)
	}
	if c.NoCalls {
		name += " no calls"
	}
	if c.After != "" {
		name += " after=" + c.After
	}
	return name + map[bool]string{false: " whole", true: " stream"}[c.stream]
}

// open makes a client as a document does.
func (c *trial) open(p conformance.Case) model.Chat {
	at := c.server.Scenario(c.Scenario)
	m := &spec.Model{ID: "assistant", Provider: p.Provider, ModelID: p.Model, API: p.API, InferenceParams: p.Params,
		Timeout: spec.Duration(time.Minute), Retry: &spec.RetryPolicy{MaxAttempts: 1}}
	if p.Server != "" {
		if m.BaseURL = at.Address(p.Server); p.Provider == "anthropic" {
			m.BaseURL += "/anthropic"
		}
	}
	if p.Provider == "gcp-vertex" {
		m.Auth = spec.Ref[spec.Auth]{ID: "token", To: &spec.BearerTokenAuth{Token: spec.NewSecret("token-of-vertex")}}
	}
	made, err := provider.New(m, provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: environment, HTTP: at.Client(), Forms: c.forms})
	testkit.Must(c.t, err)
	return made
}

// target is the name of the server whose rules count.
func (c *trial) target() string {
	return cmp.Or(c.Server, map[string]string{"azure-openai": "azure", "aws-bedrock": "bedrock", "gcp-vertex": "vertex", "google-ai": "google"}[c.Provider], c.Provider)
}

var answerSchema = model.Schema{Name: "answer", JSON: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}`)}

// request is the next request.
func (c *trial) request() model.Request {
	req := model.Request{Messages: append([]chat.Message{chat.Text(chat.System, c.system)}, c.list...), Stream: c.stream}
	if c.Tools {
		req.Tools = []model.Tool{{Name: "find_order", Description: "Finds an order.", Parameters: json.RawMessage(orderSchema)}}
	}
	if n := len(c.list); n > 0 && c.NoCalls {
		req.NoCalls = c.list[n-1].Role == chat.Tool
	}
	if c.Schema {
		req.Schema = &answerSchema
	}
	return req
}

// call requests an answer, and adds it and the results of its calls.
func (c *trial) call() (*model.Response, error) {
	c.deltas.Reset()
	got, err := model.Call(c.t.Context(), c.client, c.request(), func(e model.Event) { c.deltas.WriteString(e.Text) })
	if err != nil {
		return nil, err
	}
	c.list = append(c.list, got.Message)
	for _, call := range got.Message.Calls() {
		result := chat.Message{ID: chat.NewID(), Role: chat.Tool, Name: call.Name, ToolCallID: call.ID, Blocks: []chat.Block{{Type: "text", Text: "shipped"}}}
		if c.Image {
			result.Blocks = append(result.Blocks, chat.Block{Type: "image", Data: []byte("\x89PNG\r\n\x1a\n0000"), MimeType: "image/png"})
		}
		c.list = append(c.list, result)
	}
	return got, nil
}

// perform has the conversation, and returns the last answer.
func (c *trial) run() (got *model.Response, err error) {
	c.client, c.system = c.open(c.Case), "Be brief."
	between := interruptions()[c.After]
	if between.begin != nil {
		between.begin(c)
	}
	for turn := range max(c.Turns, 1) {
		if turn > 0 && between.turn != nil {
			between.turn(c)
		}
		if n := len(c.list); n == 0 || c.list[n-1].Role != chat.Tool { // else another model has begun the turn
			c.list = append(c.list, chat.Text(chat.User, fmt.Sprintf("Question %d: where are order 7 and 8?", turn+1)))
		}
		for step := range 9 {
			if got, err = c.call(); err != nil {
				return nil, err
			}
			if between.step != nil {
				between.step(c)
			}
			if !got.Message.HasCalls() {
				break
			}
			if step == 8 {
				return nil, fmt.Errorf("the model calls tools without an end")
			}
		}
	}
	return got, nil
}

// result runs the case; an empty text means that it succeeds.
func (c *trial) result() string {
	c.server, c.forms = conformance.New(c.t), &model.SchemaForms{}
	got, err := c.run()
	var broken []string
	requests := 0
	for _, v := range append(c.former, c.server.Verdicts()...) {
		if v.Server != c.target() {
			continue
		}
		requests++
		for _, f := range v.Violations {
			if f.Rule == c.rule.ID {
				broken = append(broken, f.Text)
			}
		}
	}
	switch {
	case requests == 0 && err == nil:
		return "the server was not called"
	case c.Invalid && len(broken) > 0 && err != nil:
		if !strings.Contains(err.Error(), broken[0][:min(len(broken[0]), 60)]) {
			return "the user does not see why: " + err.Error()
		}
		return ""
	case !c.Retries && len(broken) > 0:
		return broken[0]
	}
	return c.expected(got, err)
}

// expected compares what the caller got.
func (c *trial) expected(got *model.Response, err error) string {
	want := c.Expect
	switch {
	case want.Error != "" && err == nil:
		return fmt.Sprintf("no error with %q, but the answer %q", want.Error, got.Message.Text())
	case want.Error != "":
		if !strings.Contains(err.Error(), want.Error) {
			return fmt.Sprintf("the error has no %q: %v", want.Error, err)
		}
		return ""
	case err != nil:
		return err.Error()
	}
	text := got.Message.Text()
	for what, ok := range map[string]bool{
		fmt.Sprintf("the text is %q", text):                             (want.Text == "" || text == want.Text) && strings.HasPrefix(text, want.Starts) && strings.Contains(text, want.Has),
		fmt.Sprintf("the deltas of the text are %q", c.deltas.String()): !c.stream || want.Starts == "" && want.Text == "" || strings.TrimSpace(c.deltas.String()) == text,
		fmt.Sprintf("the usage is %+v", got.Usage): (want.Input == 0 || got.Usage.Input == want.Input) && (want.Cached == 0 || got.Usage.Cached == want.Cached) &&
			(want.CacheWrite == 0 || got.Usage.CacheWrite == want.CacheWrite) && (want.Output == 0 || got.Usage.Output == want.Output),
		fmt.Sprintf("the answer ended by %q", got.Finish): want.Finish == "" || got.Finish == want.Finish,
	} {
		if !ok {
			return what
		}
	}
	return ""
}

// trials are all cases of the rules, not streamed and streamed.
func trials(t testing.TB) (list []*trial) {
	for _, rule := range conformance.Rules().Rules {
		for _, one := range rule.Cases {
			for _, stream := range []bool{false, true} {
				list = append(list, &trial{Case: one, t: t, rule: rule, stream: stream})
			}
		}
	}
	return list
}

// TestConformance runs all cases with the clients of documents. What fails must be in testdata/failures.txt, and
// what is there must fail.
func TestConformance(t *testing.T) {
	known := strings.Split(strings.TrimSpace(testkit.ReadFile(t, failures)), "\n")
	known = slices.DeleteFunc(known, func(line string) bool { return line == "" || strings.HasPrefix(line, "#") })
	results, left := map[string]string{}, []string{}
	for _, c := range trials(t) {
		name := c.name()
		t.Run(name, func(t *testing.T) {
			c.t = t
			problem := c.result()
			results[name] = problem
			expected := slices.Contains(known, name)
			switch {
			case problem != "" && expected:
				left = append(left, name)
			case problem != "":
				t.Errorf("%s: %s\n(%s)", name, problem, c.rule.Title)
			case expected && !*update:
				t.Errorf("this case succeeds now: remove its line from %s, or use -update", failures)
			}
		})
	}
	for _, name := range known {
		if _, ok := results[name]; !ok && !*update {
			t.Errorf("%s has %q, which is not a case", failures, name)
		}
	}
	if *update {
		const head = "# The cases that fail. A line leaves the list when its case succeeds (go test -update); no line may be added.\n"
		testkit.Must(t, os.WriteFile(failures, []byte(head+strings.Join(left, "\n")+"\n"), 0o600))
	}
	compareTable(t, results)
}

// compareTable compares docs/conformance.md with the results, or writes it.
func compareTable(t *testing.T, results map[string]string) {
	t.Helper()
	const begin, end = "<!-- begin table -->\n", "<!-- end table -->\n"
	text := testkit.ReadFile(t, page)
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", page, begin, end)
	}
	want := before + begin + "\n" + table(t, results) + "\n" + end + after
	if *update {
		testkit.Must(t, os.WriteFile(filepath.FromSlash(page), []byte(want), 0o600))
		return
	}
	if text != want && len(results) == len(trials(t)) {
		t.Errorf("docs/conformance.md is out of date: run go test ./internal/model/modeltest/conformance -update")
	}
}

// table has a row for each rule and provider: how many of its cases succeed.
func table(t *testing.T, results map[string]string) string {
	type key struct{ rule, at string }
	passed, all := map[key]int{}, map[key]int{}
	var order []key
	for _, c := range trials(t) {
		k := key{c.rule.ID, c.target()}
		if all[k] == 0 {
			order = append(order, k)
		}
		all[k]++
		if results[c.name()] == "" {
			passed[k]++
		}
	}
	rules := map[string]conformance.Rule{}
	for _, r := range conformance.Rules().Rules {
		rules[r.ID] = r
	}
	var b strings.Builder
	b.WriteString("| Rule | Requirement | Server | Cases | Result |\n| --- | --- | --- | --- | --- |\n")
	for _, k := range order {
		r := rules[k.rule]
		verdict := "yes"
		if passed[k] < all[k] {
			verdict = fmt.Sprintf("%d of %d", passed[k], all[k])
		}
		fmt.Fprintf(&b, "| %s | [%s](%s) | %s | %d | %s |\n", r.Number, r.Title, r.Source, k.at, all[k], verdict)
	}
	return b.String()
}

// clients are those of the core, and the one of Bedrock, which needs no other module.
func clients() provider.Clients {
	all := provider.Core()
	all["aws-bedrock"] = modelbedrock.Part()
	return all
}
