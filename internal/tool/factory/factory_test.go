package factory_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCoerceResult(t *testing.T) {
	for _, c := range []struct {
		outputs []string
		answer  string
		want    string
	}{
		{nil, `"anything"`, `"anything"`},
		{[]string{"pay: boolean"}, `{"pay": "yes", "more": 1}`, `{"pay":true}`},
		{[]string{"pay: boolean"}, `"no"`, `{"pay":false}`},
		{[]string{"pay: boolean"}, `"maybe"`, `error: output pay: expected boolean, got "maybe"`},
		{[]string{"pay: boolean"}, `null`, `error: output pay: `},
		{[]string{"note: text?"}, `null`, `{"note":null}`},
		{[]string{"n: int", "note: text?"}, `{"n": "7"}`, `{"n":7,"note":null}`},
		{[]string{"n: int", "note: text?"}, `{"note": "x"}`, `error: the answer has no "n"; expected an object with n (int), note (text?)`},
		{[]string{"n: int", "m: int"}, `7`, `error: the answer is `},
		{[]string{"days: list[date]"}, `["2026-01-02"]`, `{"days":["2026-01-02"]}`},
	} {
		parsed, err := value.Parse(c.answer)
		if err != nil {
			t.Fatal(err)
		}
		v, err := factory.CoerceResult(valuetest.Variables(t, nil, c.outputs...), parsed)
		got := string(value.JSON(v))
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, c.want) || err == nil && got != c.want {
			t.Errorf("%v %s: got %s, want %s", c.outputs, c.answer, got, c.want)
		}
	}
}

// flow returns a flow with these inputs and outputs.
func flow(t *testing.T, inputs, outputs []string) *spec.Flow {
	t.Helper()
	f := &spec.Flow{ID: "inner", Description: "Adds a number to itself"}
	for _, v := range valuetest.Variables(t, nil, inputs...) {
		f.Inputs = append(f.Inputs, spec.Ref[*spec.Variable]{ID: v.ID, To: v})
	}
	for _, v := range valuetest.Variables(t, nil, outputs...) {
		f.Outputs = append(f.Outputs, spec.Ref[*spec.Variable]{ID: v.ID, To: v})
	}
	return f
}

func TestFlowTool(t *testing.T) {
	declared := &spec.FlowTool{Flow: spec.Ref[*spec.Flow]{To: flow(t, []string{"n: int", "more: int?"}, []string{"m: int"})}}
	declared.ID = "twice"
	var made tool.Tool
	rows, deep := 1, false
	box := factory.New(factory.Options{Getenv: os.Getenv, Flow: func(ctx context.Context, call factory.FlowCall, emit func([]any, error) error) error {
		if deep {
			_, err := made.Call(ctx, map[string]any{"n": 1})
			return err
		}
		if call.Caller.Session != "me" || call.Inputs[1] != value.Unset {
			t.Errorf("the flow is called by %+v with %v", call.Caller, call.Inputs)
		}
		for range rows {
			n, _ := call.Inputs[0].(int64)
			var failed error
			if n == 13 {
				failed = errors.New("step x: unlucky")
			}
			if err := emit([]any{2 * n}, failed); err != nil {
				return err
			}
		}
		return nil
	}})
	defer box.Close()
	var err error
	if made, err = box.Tool(declared); err != nil {
		t.Fatal(err)
	}
	if info := made.Info(); info.Name != "inner" || info.Description != "Adds a number to itself" || len(info.Inputs) != 2 {
		t.Errorf("the tool is %+v", info)
	}
	ctx := tool.WithCaller(t.Context(), tool.Caller{Session: "me", Row: 3})
	call := func(n any) string {
		v, err := made.Call(ctx, map[string]any{"n": n})
		if err != nil {
			return "error: " + err.Error()
		}
		return string(value.JSON(v))
	}
	for n, want := range map[string]string{"4": `{"m":8}`, "13": "error: tool twice: flow inner: step x: unlucky", "four": "error: tool twice: argument n: expected int"} {
		if got := call(n); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", n, got, want)
		}
	}
	rows = 2
	if got := call(1); got != `[{"m":2},{"m":2}]` {
		t.Errorf("two rows: %s", got)
	}
	deep = true
	if got := call(1); !strings.Contains(got, "more than 16 deep") || len(got) > 1200 {
		t.Errorf("a flow that calls itself: %s", got)
	}
}

// A tool that starts programs is rejected if its file is remote, also when the
// application's document is local.
func TestTool_RemoteDocumentStartsNoPrograms(t *testing.T) {
	box := factory.New(factory.Options{Getenv: os.Getenv})
	defer box.Close()
	base := func(id string) spec.ToolBase {
		b := spec.ToolBase{ID: id}
		b.SetPosition(&spec.Position{Value: source.Span{File: &source.File{Path: "https://docs.example/app.yaml"}, Start: source.Pos{Line: 3, Column: 5}}})
		return b
	}
	for _, declared := range []spec.Tool{
		&spec.PythonFunctionTool{ToolBase: base("os"), ModulePath: "os", FunctionName: "system"},
		&spec.CommandTool{ToolBase: base("sh"), Program: "/bin/sh"},
		&spec.MCPTool{ToolBase: base("mcp"), Command: "/bin/sh"},
	} {
		if _, err := box.Tool(declared); err == nil || !strings.Contains(err.Error(), "tool "+declared.EntityID()+" is declared at https://docs.example/app.yaml and starts a program") {
			t.Errorf("%s: %v", declared.EntityID(), err)
		}
	}
	if _, err := box.Tool(&spec.PythonFunctionTool{ToolBase: base("now"), ModulePath: "qtype.application.commons.tools", FunctionName: "get_current_timestamp"}); err != nil {
		t.Errorf("a bundled function: %v", err)
	}
}
