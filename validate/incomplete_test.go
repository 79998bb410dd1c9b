package validate_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/validate"
)

// TestIncomplete_NoFurtherErrors makes parts of a valid document unreadable. Only this
// error must be reported, not those that follow from it.
func TestIncomplete_NoFurtherErrors(t *testing.T) {
	base := incompleteBase(t)
	if got := codesOf(t, base); len(got) > 0 {
		t.Fatalf("the unchanged document has %v", got)
	}
	for _, section := range []string{"memories", "models", "auths", "types", "tools", "indexes", "flows"} {
		pattern := regexp.MustCompile(`(?m)^` + section + `:\n(?:  .*\n)+`)
		for code, value := range map[string]string{"QT006": "!include gone.yaml", "QT105": "5", "QT005": "${NOPE_NOT_SET}", "QT004": "!unknown x"} {
			wantOnly(t, section+" as "+value, pattern.ReplaceAllLiteralString(base, section+": "+value+"\n"), code)
		}
		wantOnly(t, section+" misspelled", strings.Replace(base, "\n"+section+":", "\n"+section+"x:", 1), "QT103")
	}
	for _, c := range unreadableParts() {
		wantOnly(t, c.from+" as "+c.to, strings.Replace(base, c.from, c.to, 1), c.code)
	}
}

// incompleteBase returns the valid document that the tests change.
func incompleteBase(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/incomplete.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// change replaces a part of the document, which causes one diagnostic.
type change struct{ from, to, code string }

// unreadableParts returns changes that make a part of the document unreadable.
func unreadableParts() []change {
	const gone = "!include gone.yaml"
	return []change{
		{"- {type: Model, id: writer, provider: openai}", "- " + gone, "QT006"},
		{"- {type: Model, id: writer, provider: openai}", "- {type: Model, provider: openai}", "QT104"},
		{"- {type: Model, id: writer, provider: openai}", "- {<<: " + gone + ", provider: openai}", "QT002"},
		{"{type: Model, id: writer,", "{type: Model, id: " + gone + ",", "QT006"},
		{"id: shop\n", "id: shop\n<<: " + gone + "\nreferences: []\n", "QT002"},
		{"    inputs: [{id: city, type: text}]", "    inputs: " + gone, "QT006"},
		{"{type: Decoder, id: parse, inputs: [raw], outputs: [number, items]}", gone, "QT006"},
		{"{type: Decoder, id: parse, inputs: [raw], outputs: [number, items]}", "!step x", "QT004"},
		{"{type: Decoder,", "{type: " + gone + ",", "QT006"},
		{"{type: Decoder,", "{type: Reader,", "QT106"},
		{"outputs: [number, items]}", "outputs: " + gone + "}", "QT006"},
		{"outputs: [number, items]}", "outputs: [number, " + gone + "]}", "QT006"},
		{"outputs: [number, items]}", "outputs: [number, {id: items}]}", "QT130"},
		{"outputs: [number, items]}", "outputs: [number, 5]}", "QT105"},
		{"id: parse, inputs: [raw]", "id: parse, inputs: " + gone, "QT006"},
		{"id: parse, inputs: [raw]", "id: parse, inputs: 5", "QT105"},
		{"id: parse, inputs: [raw]", "id: parse, inputs: [\"${NOPE_NOT_SET}\"]", "QT005"},
		{"model: writer", "model: " + gone, "QT006"},
		{"model: writer", "model: ${NOPE_NOT_SET}", "QT005"},
		{"tools: [weather]", "tools: " + gone, "QT006"},
		{"- {id: number, type: int}", "- " + gone, "QT006"},
		{"{id: number, type: int}", "{id: number, type: " + gone + "}", "QT006"},
		{"inputs: [question, lang]", "inputs: " + gone, "QT006"},
		{"outputs: [answer]\n    steps", "outputs: " + gone + "\n    steps", "QT006"},
		{"inputs: [raw, place]\n    outputs: [order, report]", "inputs: " + gone + "\n    outputs: [order, report]", "QT006"},
		{"outputs: [order, report]", "outputs: " + gone, "QT006"},
		{"field_bindings: {number: number, items: items}", "field_bindings: " + gone, "QT006"},
		{"{number: number, items: items}", "{number: " + gone + ", items: items}", "QT006"},
		{"input_bindings: {city: place}", "input_bindings: " + gone, "QT006"},
		{"output_bindings: {report: report}", "output_bindings: " + gone, "QT006"},
		{"interface: {type: Conversational, session_inputs: [lang]}", "interface: " + gone, "QT006"},
		{"session_inputs: [lang]", "session_inputs: " + gone, "QT006"},
		{"properties: {number: int, items: \"list[text]\"}", "properties: " + gone, "QT006"},
		{"{number: int, items:", "{number: " + gone + ", items:", "QT006"},
		{"    steps:\n      - {type: Decoder", "    step:\n      - {type: Decoder", "QT103"},
		{"    variables:\n      - {id: raw", "    things:\n      - {id: raw", "QT103"},
		{"id: shop\n", "id: \"\"\n", "QT105"},
		{"- {id: raw, type: text}", "- {id: \"\", type: text}", "QT105"},
		{"- {id: raw, type: text}", "- {id: \"${NOPE_NOT_SET}\", type: text}", "QT005"},
		{"{type: Decoder,", "{", "QT106"},
		{"{type: Decoder,", "{type: [Decoder],", "QT106"},
		{"{type: VectorSearch,", "{type: 5,", "QT106"},
		{"{type: VectorIndex,", "{", "QT106"},
		{"{type: Model,", "{", "QT106"},
		{"inputs: [{id: city,", "inputs: [{id: 5,", "QT105"},
		{"inputs: [{id: city,", "inputs: [{", "QT104"},
		{"outputs: [{id: report, type: text}]", "outputs: [~]", "QT105"},
		{"api_key: \"${K:-x}\"", "api_key: {$ref: key}", "QT105"},
		{"provider: openai, dimensions", "provider: 5, dimensions", "QT107"},
		{"type: Conversational,", "type: yes,", "QT107"},
	}
}

// TestIncomplete_MisspelledKeys misspells every key of the document.
func TestIncomplete_MisspelledKeys(t *testing.T) {
	base := incompleteBase(t)
	// The names of properties and bound arguments are not keys of the language.
	names := []string{"number", "items", "city", "report", "raw", "place", "order"}
	for _, at := range regexp.MustCompile(`(\w\w+):[ \n]`).FindAllStringSubmatchIndex(base, -1) {
		key := base[at[2]:at[3]]
		if !slices.Contains(names, key) {
			misspelled := key[:1] + "q" + key[2:]
			wantOnly(t, fmt.Sprintf("%s at %d as %s", key, at[2], misspelled), base[:at[2]]+misspelled+base[at[3]:], "QT103")
		}
	}
}

// TestIncomplete_OtherErrors checks that errors unrelated to the unreadable part are reported.
func TestIncomplete_OtherErrors(t *testing.T) {
	raw := incompleteBase(t)
	base := strings.Replace(raw, "- {type: Model, id: writer, provider: openai}", "- !include gone.yaml", 1)
	for _, c := range []change{
		{"memory: chat_memory", "memory: chat_memry", "QT202"},
		{"tools: [weather]", "tools: [wether]", "QT202"},
		{"model: writer", "model: chat_memory", "QT203"},
		{"{city: place}", "{town: place}", "QT390"},
		{"inputs: [raw], outputs: [number, items]", "inputs: [], outputs: [number, items]", "QT330"},
		{"type: Order}", "type: Ordr}", "QT110"},
	} {
		if got := codesOf(t, strings.Replace(base, c.from, c.to, 1)); !slices.Contains(got, c.code) || !slices.Contains(got, "QT006") {
			t.Errorf("%s: got %v, want %s and QT006", c.to, got, c.code)
		}
	}
	step := strings.Replace(raw, "inputs: [raw], outputs: [number, items]", "inputs: !include gone.yaml, outputs: []", 1)
	if got := codesOf(t, step); !slices.Contains(got, "QT332") {
		t.Errorf("the other side of a step: got %v", got)
	}
}

// wantOnly fails unless a text has exactly one diagnostic, with the given code.
func wantOnly(t *testing.T, what, text, code string) {
	t.Helper()
	if got := codesOf(t, text); len(got) != 1 || got[0] != code {
		t.Errorf("%s: got %v, want only %s", what, got, code)
	}
}

// codesOf returns the codes of all diagnostics of a text.
func codesOf(t *testing.T, text string) []string {
	t.Helper()
	path := testkit.WriteFile(t, "app.yaml", text)
	loaded, list := loader.Load(t.Context(), path, loader.Options{})
	list = append(list, validate.Check(loaded.Document)...)
	codes := []string{}
	for _, d := range list {
		codes = append(codes, d.Code)
	}
	return codes
}

// TestConversation_RepeatedMessage checks that a message variable can be listed twice.
func TestConversation_RepeatedMessage(t *testing.T) {
	raw := incompleteBase(t)
	twice := strings.NewReplacer("inputs: [question, lang]", "inputs: [question, lang, question]", "outputs: [answer]\n    steps", "outputs: [answer, answer]\n    steps")
	if got := codesOf(t, twice.Replace(raw)); len(got) > 0 {
		t.Errorf("got %v", got)
	}
	other := strings.Replace(raw, "inputs: [question, lang]", "inputs: [question, lang, answer]", 1)
	if got := codesOf(t, other); !slices.Contains(got, "QT313") {
		t.Errorf("two messages: got %v", got)
	}
}
