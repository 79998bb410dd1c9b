package pymodule_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/internal/convert/pymodule"
	"github.com/qtype-dev/qtype/spec/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPathOf(t *testing.T) {
	for file, want := range map[string]string{
		"tools.py":             "tools",
		"./shop/tools.py":      "shop.tools",
		"shop/__init__.py":     "shop",
		"/srv/shop/tools.py":   "tools",
		"../shop/tools.py":     "tools",
		"shop/sub/../tools.py": "shop.tools",
	} {
		if got := pymodule.PathOf(file); got != want {
			t.Errorf("PathOf(%q) = %q, want %q", file, got, want)
		}
	}
}

func TestConvert(t *testing.T) {
	python, err := pymodule.Interpreter()
	if err != nil {
		t.Skip(err)
	}
	for _, tt := range []struct{ name, source, want string }{
		{"types", "def f(a: int, b: list[str], c: float | None = None) -> bool:\n    return True\n", "- {id: a, type: int}"},
		{"optional", "def f(a: int | None = None) -> bool:\n    return True\n", `{id: a, type: "int?"}`},
		{"description", "def f() -> str:\n    \"\"\"Does it.\"\"\"\n", "description: Does it."},
		{"record", "from pydantic import BaseModel\nclass P(BaseModel):\n    x: int\ndef f(p: P) -> P:\n    return p\n", "- id: P"},
		{"no annotation", "def f(a) -> str:\n    return a\n", ""},
		{"syntax", "def f(:\n", ""},
		{"nothing public", "def _f() -> int:\n    return 1\n", ""},
	} {
		app, err := pymodule.Convert(t.Context(), input.NewReport(nil), python, "m", &source.File{Path: "m.py", Text: []byte(tt.source)})
		switch {
		case tt.want == "":
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: error %v", tt.name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case !strings.Contains(app.YAML(), tt.want):
			t.Errorf("%s: %s is not in\n%s", tt.name, tt.want, app.YAML())
		}
	}
	const mixed = "class Q(TypedDict):\n    f: Callable\nclass P(TypedDict):\n    q: Q\ndef bad(a) -> str:\n    return a\ndef many(*a: int) -> int:\n    return 1\n" +
		"def uses(p: P) -> int:\n    return 1\nasync def good(a: int) -> int:\n    return a\n"
	r := input.NewReport(nil)
	app, err := pymodule.Convert(t.Context(), r, python, "m", &source.File{Path: "m.py", Text: []byte(mixed)})
	if err != nil || strings.Count(app.YAML(), "PythonFunctionTool") != 1 || !strings.Contains(app.YAML(), "m.good") {
		t.Errorf("the function with types was not converted: %v", err)
	}
	list := r.Diagnostics().Error()
	for _, want := range []string{"m.py:1:1: Q is left out: Q.f: the type Callable has no counterpart", "m.py:3:1: P is left out", "m.py:5:1: bad is left out", "m.py:7:1: many is left out", "m.py:9:1: uses is left out"} {
		if !strings.Contains(list, want) {
			t.Errorf("%q is not in\n%s", want, list)
		}
	}
	if _, err := pymodule.Convert(t.Context(), input.NewReport(nil), python, "my-tools", &source.File{}); err == nil {
		t.Error("a name with a hyphen was accepted")
	}
}
