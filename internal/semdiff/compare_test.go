package semdiff_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/semdiff"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/validate"
)

const base = `id: shop
types:
  - id: Order
    properties: {number: int, note: text?}
memories:
  - id: chat_memory
    token_limit: 50000
auths:
  - {type: api_key, id: key, api_key: sk-first-secret}
tools:
  - type: APITool
    id: find
    name: find_order
    description: Finds an order.
    endpoint: https://shop.example/orders
    headers: {X-Token: very-secret, Accept: text/plain}
    inputs: [{id: number, type: int}]
    outputs: [{id: state, type: text}]
models:
  - {type: Model, id: assistant, provider: mock, auth: key, inference_params: {temperature: 0.2}}
flows:
  - id: chat
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: reply, type: ChatMessage}]
    inputs: [message]
    outputs: [reply]
    steps: [{type: LLMInference, id: back, model: assistant, inputs: [message], outputs: [reply]}]
  - id: talk
    variables:
      - {id: question, type: ChatMessage}
      - {id: prompt, type: text}
      - {id: answer, type: ChatMessage}
      - {id: order, type: Order}
    inputs: [question, order]
    outputs: [answer]
    steps:
      - {type: PromptTemplate, id: prepare, template: 'The question: {question}', inputs: [question], outputs: [prompt]}
      - {type: LLMInference, id: respond, model: assistant, memory: chat_memory, inputs: [prompt], outputs: [answer]}
      - {type: Echo, id: repeat, inputs: [order], outputs: [order]}
`

// load loads a text as a document without errors.
func load(t *testing.T, name, text string) *spec.Document {
	t.Helper()
	path := testkit.WriteFile(t, name, text)
	return open(t, path)
}

func open(t *testing.T, path string) *spec.Document {
	t.Helper()
	result, diagnostics := loader.Load(t.Context(), path, loader.Options{})
	diagnostics.Add(validate.Check(result.Document)...)
	if err := diagnostics.Err(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return result.Document
}

// lines formats changes as "class: subject: message".
func lines(changes []semdiff.Change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, fmt.Sprintf("%s: %s: %s", c.Impact, c.Subject(), c.Message))
	}
	return all
}

// edit replaces pairs of texts, which must occur.
func edit(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("missing %q", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

func TestDocuments(t *testing.T) {
	for name, test := range map[string]struct {
		edits []string
		want  []string
	}{
		"comments and layout":  {[]string{"id: shop\n", "# a shop\nid:   'shop'\n\n", "provider: mock, auth: key, inference_params: {temperature: 0.2}}", "provider: mock,  # here\n    auth: key, inference_params: {\"temperature\": 0.2}}"}, nil},
		"an explicit default":  {[]string{"token_limit: 50000", "token_limit: 50000\n    chat_history_token_ratio: 0.7"}, nil},
		"the case of a method": {[]string{"    headers:", "    method: get\n    headers:"}, nil},
		"another scope": {[]string{"    token_limit: 50000", "    token_limit: 50000\n    scope: user"},
			[]string{"breaking: memory chat_memory: scope: session → user"}},
		"another method": {[]string{"    headers:", "    method: post\n    headers:"},
			[]string{"breaking: tool find: method: GET → POST"}},
		"another notation of a number": {[]string{"0.2", "2.0e-1", "50000", "50_000"}, nil},
		"a required input added": {[]string{"inputs: [question, order]", "inputs: [question, order, extra]", "      - {id: prompt,", "      - {id: extra, type: int}\n      - {id: prompt,"},
			[]string{"breaking: flow talk: input extra: added, int, required"}},
		"an optional input added": {[]string{"inputs: [question, order]", "inputs: [question, order, extra]", "      - {id: prompt,", "      - {id: extra, type: int?}\n      - {id: prompt,"},
			[]string{"harmless: flow talk: input extra: added, int, optional"}},
		"an input removed": {[]string{"inputs: [question, order]", "inputs: [question]", "      - {type: Echo, id: repeat, inputs: [order], outputs: [order]}\n", "", "      - {id: order, type: Order}\n", ""},
			[]string{"breaking: flow talk: input order: removed", "behaviour: step repeat of flow talk: removed"}},
		"inputs reordered": {[]string{"[question, order]", "[order, question]"}, nil},
		"an output removed": {[]string{"outputs: [answer]\n    steps", "outputs: [order]\n    steps"},
			[]string{"breaking: flow talk: output answer: removed", "harmless: flow talk: output order: added, Order"}},
		"interface removed": {[]string{"    interface: {type: Conversational}\n", ""}, []string{"breaking: flow chat: interface: removed"}},
		"a flow removed":    {[]string{base[strings.Index(base, "  - id: chat\n"):strings.Index(base, "  - id: talk\n")], ""}, []string{"breaking: flow chat: removed"}},
		"an output added": {[]string{"outputs: [answer]\n    steps", "outputs: [answer, order]\n    steps"},
			[]string{"harmless: flow talk: output order: added, Order"}},
		"an input made optional": {[]string{"id: order, type: Order", "id: order, type: Order?"},
			[]string{"harmless: flow talk: input order: Order → Order?"}},
		"an input of another type": {[]string{"id: order, type: Order", "id: order, type: text"},
			[]string{"breaking: flow talk: input order: Order → text"}},
		"a flow renamed": {[]string{"id: talk", "id: converse"}, []string{"breaking: flow converse: renamed from talk"}},
		"an input renamed": {[]string{"id: question", "id: query", "{question}", "{query}", "[question", "[query"},
			[]string{"breaking: flow talk: input query: renamed from question"}},
		"a variable renamed": {[]string{"id: prompt", "id: p", "[prompt]", "[p]"},
			[]string{"harmless: variable p of flow talk: renamed from prompt"}},
		"a memory renamed": {[]string{"chat_memory", "mem"}, []string{"breaking: memory mem: renamed from chat_memory"}},
		"a model renamed":  {[]string{"assistant", "helper"}, []string{"harmless: model helper: renamed from assistant"}},
		"a type renamed":   {[]string{"Order", "Purchase"}, []string{"harmless: type Purchase: renamed from Order"}},
		"a step renamed":   {[]string{"id: prepare", "id: fill"}, []string{"harmless: step fill of flow talk: renamed from prepare"}},
		"an auth and a model renamed": {[]string{"id: key", "id: k", "auth: key", "auth: k", "assistant", "helper"},
			[]string{"harmless: model helper: renamed from assistant", "harmless: auth k: renamed from key"}},
		"the application renamed": {[]string{"id: shop", "id: store"}, []string{"breaking: application store: renamed from shop"}},
		"a smaller memory":        {[]string{"50000", "20000"}, []string{"breaking: memory chat_memory: token_limit: 50000 → 20000"}},
		"a larger memory":         {[]string{"50000", "60000"}, []string{"behaviour: memory chat_memory: token_limit: 50000 → 60000"}},
		"a larger memory with a smaller chat share": {[]string{"token_limit: 50000", "token_limit: 60000\n    chat_history_token_ratio: 0.65"},
			[]string{"behaviour: memory chat_memory: chat_history_token_ratio: 0.7 → 0.65", "behaviour: memory chat_memory: token_limit: 50000 → 60000"}},
		"another policy": {[]string{"token_limit: 50000", "policy: round_window"},
			[]string{"breaking: memory chat_memory: policy: flush → round_window", "behaviour: memory chat_memory: token_limit: 50000 → 100000"}},
		"memory of a step removed": {[]string{"memory: chat_memory, ", ""}, []string{"breaking: step respond of flow talk: memory: chat_memory → not set"}},
		"another tool name":        {[]string{"find_order", "get_order"}, []string{"breaking: tool find: name: find_order → get_order"}},
		"another endpoint": {[]string{"shop.example/orders", "shop.example/v2"},
			[]string{"breaking: tool find: endpoint: https://shop.example/orders → https://shop.example/v2"}},
		"a tool's input": {[]string{"{id: number, type: int}", "{id: number, type: text}, {id: year, type: int?}"},
			[]string{"breaking: tool find: input number: int → text", "behaviour: tool find: input year: added, int, optional"}},
		"a tool's output":      {[]string{"{id: state, type: text}", "{id: due, type: text}"}, []string{"breaking: tool find: output state: removed", "harmless: tool find: output due: added, text"}},
		"a tool's description": {[]string{"Finds an order.", "Looks."}, []string{`behaviour: tool find: description: "Finds an order." → Looks.`}},
		"a secret":             {[]string{"sk-first-secret", "sk-second-secret"}, []string{"behaviour: auth key: api_key: value changed (***)"}},
		"a secret header":      {[]string{"very-secret", "more-secret"}, []string{"behaviour: tool find: headers.X-Token: value changed (***)"}},
		"a prompt":             {[]string{"The question:", "Question:"}, []string{`behaviour: step prepare of flow talk: template: "The question: {question}" → "Question: {question}"`}},
		"a model's settings": {[]string{"temperature: 0.2", "temperature: 1, top_p: 0.5"},
			[]string{"behaviour: model assistant: inference_params.temperature: 0.2 → 1", "behaviour: model assistant: inference_params.top_p: not set → 0.5"}},
		"steps reordered": {[]string{"      - {type: Echo, id: repeat, inputs: [order], outputs: [order]}\n", "", "    steps:\n", "    steps:\n      - {type: Echo, id: repeat, inputs: [order], outputs: [order]}\n"},
			[]string{"behaviour: step repeat of flow talk: moved: now first, was after respond"}},
		"another step": {[]string{"    steps:\n", "    steps:\n      - {type: Echo, id: more, inputs: [order], outputs: [order]}\n"},
			[]string{"behaviour: step more of flow talk: added first"}},
		"a required field of a served type":  {[]string{"number: int, note", "number: int, price: float, note"}, []string{"breaking: type Order: field price: added, float"}},
		"an optional field of a served type": {[]string{"number: int, note", "number: int, price: float?, note"}, []string{"harmless: type Order: field price: added, float?"}},
		"a field made required":              {[]string{"note: text?", "note: text"}, []string{"breaking: type Order: field note: text? → text"}},
		"a field made optional":              {[]string{"number: int,", "number: int?,"}, []string{"harmless: type Order: field number: int → int?"}},
		"fields reordered":                   {[]string{"number: int, note: text?", "note: text?, number: int"}, nil},
		"a store added": {[]string{"memories:\n", "stores: [{id: disk, type: sqlite, url: other.db}]\nmemories:\n"},
			[]string{"breaking: application shop: memories that name no store live in disk, not in the embedded file", "harmless: store disk: added"}},
		"another store of a memory": {[]string{"token_limit: 50000", "token_limit: 50000\n    store: postgres://u:my-secret@h/db"},
			[]string{"breaking: memory chat_memory: store: added"}},
		"a ttl added":         {[]string{"token_limit: 50000", "token_limit: 50000\n    ttl: 24h"}, []string{"breaking: memory chat_memory: ttl: not set → 24h0m0s"}},
		"context of a memory": {[]string{"token_limit: 50000", "token_limit: 50000\n    context: [{type: pinned, text: Be kind.}]"}, []string{"behaviour: memory chat_memory: context: not set → 1 item"}},
		"an on_error":         {[]string{"id: prepare,", "id: prepare, on_error: skip,"}, []string{"behaviour: step prepare of flow talk: on_error: fail → skip"}},
		"a step in another flow": {[]string{"      - {type: Echo, id: repeat, inputs: [order], outputs: [order]}\n", "  - id: more\n    variables: [{id: o, type: Order}]\n    inputs: [o]\n    outputs: [o]\n    steps: [{type: Echo, id: repeat, inputs: [o], outputs: [o]}]\n"},
			[]string{"behaviour: step repeat of flow more: inputs: [order] → [o]", "behaviour: step repeat of flow more: outputs: [order] → [o]", "behaviour: step repeat of flow talk: removed", "harmless: flow more: added"}},
		"program arguments": {[]string{"tools:\n", "tools:\n  - {type: CommandTool, id: cmd, name: cmd, description: d, program: p, args: [--api-key, a-secret, --token=b-secret, -v]}\n"},
			[]string{"harmless: tool cmd: added"}},
		"a variable of another type":   {[]string{"{id: prompt, type: text}", "{id: prompt, type: text?}"}, []string{"behaviour: variable prompt of flow talk: type: text → text?"}},
		"another notation of optional": {[]string{"note: text?}", "note: text?}", "{id: order, type: Order}", "{id: order, type: Order, optional: false}"}, nil},
		"concurrency":                  {[]string{"memory: chat_memory,", "memory: chat_memory, concurrency_config: {num_workers: 4},"}, []string{"harmless: step respond of flow talk: concurrency_config: added"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := load(t, "old.qtype.yaml", base)
			after := load(t, "new.qtype.yaml", edit(t, base, test.edits...))
			changes := semdiff.Documents(before, after)
			if got := lines(changes); !slices.Equal(got, test.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(test.want, "\n  "))
			}
			var text bytes.Buffer
			if err := cmp.Or(semdiff.Text(&text, changes, false), semdiff.JSON(&text, "old", "new", changes)); err != nil || strings.Contains(text.String(), "secret\"") || strings.Contains(text.String(), "-secret") {
				t.Errorf("%v, or a secret is shown:\n%s", err, text.String())
			}
			for _, c := range changes {
				if c.Old.Span.IsZero() && c.Action != semdiff.Added || c.New.Span.IsZero() && c.Action != semdiff.Removed {
					t.Errorf("%s: a position is missing", c.Message)
				}
			}
		})
	}
}

// TestDocuments_References checks that moving entities to another file is no
// change.
func TestDocuments_References(t *testing.T) {
	folder := t.TempDir()
	models := base[strings.Index(base, "  - {type: Model"):strings.Index(base, "flows:")]
	sections := edit(t, base, "models:\n"+models, "references:\n  - !include models.yaml\n")
	for name, text := range map[string]string{"models.yaml": strings.ReplaceAll(models, "  - ", "- "), "app.qtype.yaml": sections} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if changes := semdiff.Documents(load(t, "old.qtype.yaml", base), open(t, filepath.Join(folder, "app.qtype.yaml"))); len(changes) > 0 {
		t.Errorf("changes: %s", strings.Join(lines(changes), "\n"))
	}
}

// TestDocuments_AmbiguousRename checks that entities with the same content are not
// matched.
func TestDocuments_AmbiguousRename(t *testing.T) {
	two := "id: a\nmodels: [{type: Model, id: one, provider: mock}, {type: Model, id: two, provider: mock}]\n"
	changes := semdiff.Documents(load(t, "old.qtype.yaml", two), load(t, "new.qtype.yaml", edit(t, two, "one", "three", "two", "four")))
	want := []string{"harmless: model one: removed", "harmless: model two: removed", "harmless: model three: added", "harmless: model four: added"}
	if got := lines(changes); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestDocuments_EnvironmentVariables checks that another variable is a change even if no
// variable is set, and that a value which moves to a variable is none.
func TestDocuments_EnvironmentVariables(t *testing.T) {
	const name = "provider: mock, "
	with := func(id string) string { return edit(t, base, name, name+"model_id: "+id+", ") }
	for _, test := range []struct{ old, now, want string }{
		{`"${QTYPE_TEST_A:-m}"`, `"${QTYPE_TEST_B:-m}"`, `behaviour: model assistant: model_id: "${QTYPE_TEST_A:-m}" → "${QTYPE_TEST_B:-m}"`},
		{`"${QTYPE_TEST_A}"`, `"${QTYPE_TEST_B}"`, `behaviour: model assistant: model_id: "${QTYPE_TEST_A}" → "${QTYPE_TEST_B}"`},
		{`"${QTYPE_TEST_A:-m}"`, `'${QTYPE_TEST_A:-m}'`, ""},
		{`m`, `"${QTYPE_TEST_A:-m}"`, ""},
	} {
		got := strings.Join(lines(semdiff.Documents(load(t, "old.qtype.yaml", with(test.old)), load(t, "new.qtype.yaml", with(test.now)))), "\n")
		if got != test.want {
			t.Errorf("%s → %s: got %q, want %q", test.old, test.now, got, test.want)
		}
	}
}

// TestDocuments_Allow checks who may use a flow.
func TestDocuments_Allow(t *testing.T) {
	with := func(keys string) string { return edit(t, base, "  - id: talk\n", "  - id: talk\n"+keys) }
	for _, test := range []struct{ old, now, want string }{
		{"", "    allow: [a]\n", "breaking: flow talk: allow: not set → [a]"},
		{"    allow: [a, b]\n", "    allow: [a]\n", "breaking: flow talk: allow: [a, b] → [a]"},
		{"    allow: [a]\n", "    allow: [a, b]\n", "behaviour: flow talk: allow: [a] → [a, b]"},
		{"    allow: [a]\n", "", "behaviour: flow talk: allow: [a] → not set"},
		{"    allow: [a, b]\n", "    allow: [b, a]\n", ""},
	} {
		got := strings.Join(lines(semdiff.Documents(load(t, "old.qtype.yaml", with(test.old)), load(t, "new.qtype.yaml", with(test.now)))), "\n")
		if got != test.want {
			t.Errorf("%q → %q: got %q, want %q", test.old, test.now, got, test.want)
		}
	}
}

// TestText_EnvironmentVariables checks that of long texts the changed lines are
// shown, and of environment variables their names.
func TestText_EnvironmentVariables(t *testing.T) {
	t.Setenv("QTYPE_TEST_HOST", "hidden.example")
	old := edit(t, base, "https://shop.example", "https://${QTYPE_TEST_HOST}", "'The question: {question}'", "\"First.\\nSecond {question}.\\nThird.\"")
	now := edit(t, old, "}/orders", "}/v2", "Second", "Zweitens")
	var text bytes.Buffer
	changes := semdiff.Documents(load(t, "old.qtype.yaml", old), load(t, "new.qtype.yaml", now))
	if err := semdiff.Text(&text, changes, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"endpoint: https://${QTYPE_TEST_HOST}/orders → https://${QTYPE_TEST_HOST}/v2", "\n      - Second {question}.\n      + Zweitens {question}.\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "hidden.example") || strings.Contains(text.String(), "Third") {
		t.Errorf("too much is shown:\n%s", text.String())
	}
}

func TestJSON(t *testing.T) {
	changes := semdiff.Documents(load(t, "old.qtype.yaml", base), load(t, "new.qtype.yaml", edit(t, base, "50000", "20000")))
	var out bytes.Buffer
	if err := semdiff.JSON(&out, "a", "b", changes); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Breaking int
		Changes  []struct {
			Class, Kind, ID, Field string
			Old, New               struct {
				File         string
				Line, Column int
				Value        string
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Breaking != 1 || len(got.Changes) != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	c := got.Changes[0]
	if c.Class != "breaking" || c.Kind != "memory" || c.ID != "chat_memory" || c.Field != "token_limit" || c.Old.Line != 7 || c.Old.Column != 18 || c.New.Value != "20000" {
		t.Errorf("%+v", c)
	}
}

// TestDocuments_Fixtures compares each valid document below the folder of the
// environment variable QTYPE_FIXTURES with itself and with the one before it.
func TestDocuments_Fixtures(t *testing.T) {
	folder := os.Getenv("QTYPE_FIXTURES")
	if folder == "" {
		t.Skip("QTYPE_FIXTURES is not set")
	}
	var before *spec.Document
	compared := 0
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		var docs [2]*spec.Document
		for i := range docs {
			result, diagnostics := loader.Load(t.Context(), path, loader.Options{})
			diagnostics.Add(validate.Check(result.Document)...)
			if diagnostics.Errors() > 0 {
				return nil
			}
			docs[i] = result.Document
		}
		if changes := semdiff.Documents(docs[0], docs[1]); len(changes) > 0 {
			t.Errorf("%s differs from itself: %q", path, lines(changes))
		}
		if before != nil {
			forth, back := semdiff.Documents(before, docs[0]), semdiff.Documents(docs[0], before)
			if len(forth) == 0 != (len(back) == 0) {
				t.Errorf("%s: %d changes one way, %d the other", path, len(forth), len(back))
			}
			if err := semdiff.Text(io.Discard, append(forth, back...), true); err != nil {
				t.Error(err)
			}
		}
		before = docs[0]
		compared++
		return nil
	})
	if err != nil || compared < 50 {
		t.Errorf("compared %d documents (%v)", compared, err)
	}
	t.Logf("compared %d documents", compared)
}

// TestDocuments_HidesSecretArguments checks that program arguments are shown,
// except those that may be secrets.
func TestDocuments_HidesSecretArguments(t *testing.T) {
	tool := "id: a\ntools:\n  - {type: CommandTool, id: cmd, name: cmd, description: d, program: p, args: [--api-key, a-secret, --token=b-secret, -v]}\n"
	changes := semdiff.Documents(load(t, "old.qtype.yaml", tool), load(t, "new.qtype.yaml", edit(t, tool, ", -v", ", -q")))
	want := "breaking: tool cmd: args: [--api-key, ***, --token=***, -v] → [--api-key, ***, --token=***, -q]"
	if got := lines(changes); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDocuments_ListItems checks the position of an item inserted in a list.
func TestDocuments_ListItems(t *testing.T) {
	model := "id: a\nmodels:\n  - type: Model\n    id: m\n    provider: mock\n    rules:\n      - {match: a, text: b}\n      - {text: c}\n"
	changes := semdiff.Documents(load(t, "old.qtype.yaml", model), load(t, "new.qtype.yaml", edit(t, model, "      - {text: c}", "      - {match: d, text: e}\n      - {text: c}")))
	if got := lines(changes); len(got) != 1 || got[0] != "behaviour: model m: rules: 2 items → 3 items, from item 2 on" || changes[0].New.Span.Start.Line != 8 {
		t.Errorf("got %q at %v", got, changes[0].New.Span)
	}
}

// TestDocuments_OptionalNotations checks that a trailing ? and optional: true are
// equal.
func TestDocuments_OptionalNotations(t *testing.T) {
	old := edit(t, base, "{id: prompt, type: text}", "{id: prompt, type: text?}", "id: order, type: Order", "id: order, type: Order?")
	now := edit(t, base, "{id: prompt, type: text}", "{id: prompt, type: text, optional: true}", "id: order, type: Order", "id: order, type: Order, optional: true")
	if changes := semdiff.Documents(load(t, "old.qtype.yaml", old), load(t, "new.qtype.yaml", now)); len(changes) > 0 {
		t.Errorf("got %q", lines(changes))
	}
}
