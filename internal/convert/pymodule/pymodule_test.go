package pymodule_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/convert/pymodule"
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
		app, err := pymodule.Convert(t.Context(), python, "m", []byte(tt.source))
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
	if _, err := pymodule.Convert(t.Context(), python, "my-tools", nil); err == nil {
		t.Error("a name with a hyphen was accepted")
	}
}
