package loader_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
)

// application loads the text of an application that must be free of diags.
func application(t *testing.T, text string) *spec.Application {
	t.Helper()
	loaded, list := loader.LoadBytes(t.Context(), "app.qtype.yaml", []byte(text), loader.Options{Lookup: env(map[string]string{
		"LIMIT": "3", "CHATS": "postgres://u:p@db.example/chats"}), NoDotEnv: true})
	if len(list) > 0 {
		t.Fatal(list)
	}
	return loaded.Document.Application
}

// TestExpressionsAreTexts: numbers and truth values alone are expressions too,
// and environment variables are set in before anything is read.
func TestExpressionsAreTexts(t *testing.T) {
	for written, want := range map[string]string{
		"n > 3": "n > 3", "3": "3", "1.5": "1.5", "yes": "true", "off": "false", "'\"x\"'": `"x"`, "n > ${LIMIT}": "n > 3",
		"|\n            n > 1 and\n            n < 3\n": "n > 1 and\nn < 3\n",
	} {
		app := application(t, "id: app\nflows:\n  - id: main\n    steps:\n      - type: Loop\n        id: l\n        flow: main\n        max_iterations: 3\n        until: "+written+"\n")
		until := app.Flows[0].Steps[0].Step.(*spec.Loop).Until
		if until.Text != want || until.Span.Start.Line != 9 || until.Span.Start.Column != 16 {
			t.Errorf("%q: got %q at %v", written, until.Text, until.Span)
		}
	}
}

// TestAssignmentsKeepTheirOrderAndBecomeOutputs: what a Transform sets it writes,
// named or not.
func TestAssignmentsKeepTheirOrderAndBecomeOutputs(t *testing.T) {
	app := application(t, "id: app\nflows:\n  - id: main\n    steps:\n      - type: Transform\n        id: t\n        outputs: [b]\n        set: {z: 1, b: x + 1, a: '\"y\"'}\n")
	step := app.Flows[0].Steps[0].Step.(*spec.Transform)
	var set, derived []string
	for _, a := range step.Set {
		set = append(set, a.Var.ID+"="+a.Expr.Text)
	}
	for _, r := range step.DerivedOutputs {
		derived = append(derived, r.ID+" "+r.Span.String())
	}
	if got := strings.Join(set, ", "); got != `z=1, b=x + 1, a="y"` {
		t.Errorf("set: %s", got)
	}
	if got := strings.Join(derived, ", "); got != "z app.qtype.yaml:8:15, a app.qtype.yaml:8:31" {
		t.Errorf("outputs: %s", got)
	}
}

// TestStoreRef_IDOrURL also where the environment gives it.
func TestStoreRef_IDOrURL(t *testing.T) {
	for written, want := range map[string]struct{ id, url string }{
		"chats": {id: "chats"}, "{$ref: chats}": {id: "chats"}, "redis://cache.example/0": {url: "redis://cache.example/0"},
		"${CHATS}": {url: "postgres://u:p@db.example/chats"}, "${NONE:-chats}": {id: "chats"},
	} {
		store := application(t, "id: app\nmemories:\n  - id: m\n    store: "+written+"\n").Memories[0].Store
		if store.Store.ID != want.id || store.URL.Reveal() != want.url {
			t.Errorf("%s: got %q and %q", written, store.Store.ID, store.URL.Reveal())
		}
		if strings.Contains(store.URL.String(), "db.example") {
			t.Error("the address prints itself")
		}
	}
}

// TestToolsThatKnowTheirOwnNames: a FlowTool has the flow's, an MCPTool's tools the server's.
func TestToolsThatKnowTheirOwnNames(t *testing.T) {
	app := application(t, "id: app\ntools:\n  - {type: FlowTool, id: f, flow: main}\n  - {type: MCPTool, id: m, command: mcp-files, env: {TOKEN: \"${LIMIT}\", PORT: \"80\"}}\nflows: [{id: main}]\n")
	server := app.Tools[1].(*spec.MCPTool)
	if app.Tools[0].(*spec.FlowTool).Flow.ID != "main" || server.Env["TOKEN"].Reveal() != "3" || server.Env["TOKEN"].Literal() || !server.Env["PORT"].Literal() {
		t.Errorf("got %v and %v", app.Tools[0], server.Env)
	}
	_, list := loader.LoadBytes(t.Context(), "app.qtype.yaml", []byte("id: app\ntools:\n  - {type: MCPTool, id: m, command: c, inputs: [], description: x}\n"), loader.Options{Lookup: noEnv, NoDotEnv: true})
	if len(list) != 2 || list[0].Code != "QT103" || list[1].Code != "QT103" {
		t.Errorf("got %v", list)
	}
}
