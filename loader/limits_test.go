package loader_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
)

// TestHostileDocuments: each gets one clear error, fast.
func TestHostileDocuments(t *testing.T) {
	const n = 10_000
	for _, c := range []struct{ name, text, code, message string }{
		{"alias bomb", testkit.AliasBomb(10), "QT009", "aliases add more than 100000 values"},
		{"alias of itself", "id: &a [*a]", "QT002", "is inside its anchor"},
		{"alias of itself by a merge", "id: x\nmemories: &a\n  - <<: *a", "QT002", "is inside its anchor"},
		{"deep lists", "id: " + strings.Repeat("[", n) + strings.Repeat("]", n), "QT009", "nested"},
		{"deeper lists than the parser takes", "id: " + strings.Repeat("[", 5*n), "QT009", "nested too deeply"},
		{"deep mappings", "id: " + strings.Repeat("{a: ", n-1) + "1" + strings.Repeat("}", n-1), "QT009", "nested"},
		{"deep blocks", "id:\n" + strings.Repeat("- ", n-1) + "x\n", "QT009", "nested"},
		{"deep aliases", deepAliases(), "QT009", "nested more than 200 levels deep"},
		{"a megabyte in one line", "id: app\ndescription: [" + strings.Repeat("x, ", 1<<20/3) + "]", "QT105", "needs a text, not a list"},
		{"a megabyte of unknown keys", "id: app\n" + manyKeys(60_000), "QT009", "more than 1000 diagnostics"},
		{"one key a hundred thousand times", "id: app\n" + strings.Repeat("description: x\n", 100_000), "QT009", "more than 1000 diagnostics"},
		{"pairs of equal keys", "id: app\n" + manyKeys(40_000) + manyKeys(40_000), "QT009", "more than 1000 diagnostics"},
		{"many quotes on a line", "id: app\ndescription: [" + strings.Repeat("\"\\\"\", ", 200_000) + "]", "QT105", "not a list"},
		{"many variables", "id: app\nx: \"" + strings.Repeat("${A:-", 200_000) + "\"", "QT103", "no key"},
		{"many variables without names", "id: app\nx: \"" + strings.Repeat("${", 200_000) + ":x\"", "QT103", "no key"},
		{"a megabyte of secrets in a line of invalid YAML", "id: [" + strings.Repeat("token: x, ", 100_000), "QT002", ""},
		{"a megabyte of colons in a line of invalid YAML", "id: [" + strings.Repeat("a:", 500_000), "QT002", ""},
		{"many lines of secrets of invalid YAML", "id: [\n" + strings.Repeat("token: x\n", 100_000), "QT002", ""},
		{"many secrets with errors", "id: app\nauths: [" + strings.Repeat("{type: api_key, api_key: x, hosst: y}, ", 20_000) + "]", "QT009", "more than 1000 diagnostics"},
		{"too large", "id: app\n#" + strings.Repeat("x", 5<<20), "QT009", "app.yaml is larger than 4 MiB"},
		{"megabytes of brackets", strings.Repeat("[]", 2<<20), "QT009", "more than 419,430 lines, commas and brackets"},
		{"a million items", "id: app\nmodels:\n" + strings.Repeat("- x\n", 1_000_000), "QT009", "lines, commas and brackets"},
		{"a NUL byte", "id: a\x00b", "QT008", "is a binary file"},
		{"a control character", "id: app\ndescription: a\x1bb", "QT002", "U+001B is not allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			_, list := load(t, c.text)
			t.Logf("took %v", time.Since(start))
			for _, d := range list {
				if d.Code == c.code && strings.Contains(d.Message, c.message) {
					return
				}
			}
			t.Errorf("%s with %q is due, got %d: %.300v", c.code, c.message, len(list), list)
		})
	}
}

// deepAliases nests further at each alias than the text does.
func deepAliases() string {
	var b strings.Builder
	b.WriteString("id: app\nmodels:\n- {id: m, type: Model, provider: mock, inference_params: {\n  a0: &a0 " + strings.Repeat("[", 50) + strings.Repeat("]", 50))
	for i := 1; i < 6; i++ {
		fmt.Fprintf(&b, ",\n  a%d: &a%d %s*a%d%s", i, i, strings.Repeat("[", 50), i-1, strings.Repeat("]", 50))
	}
	return b.String() + "}}\n"
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key_number_%d: 1\n", i)
	}
	return b.String()
}

func TestIncludesAreBounded(t *testing.T) {
	// Each file includes the next ten times: without a bound, ten to the power of eight.
	files := []string{}
	for i := range 8 {
		files = append(files, fmt.Sprintf("f%d.yaml", i), strings.Repeat(fmt.Sprintf("- !include f%d.yaml\n", i+1), 10))
	}
	start := time.Now()
	_, list := loader.Load(t.Context(), write(t, append(files, "f8.yaml", "x")...), loader.Options{Lookup: noEnv})
	t.Logf("took %v", time.Since(start))
	found := 0
	for _, d := range list {
		if d.Code == "QT009" && strings.Contains(d.Message, "includes more than 1000 files") {
			found++
		}
	}
	if found != 1 {
		t.Errorf("found %d, want one: %.300v", found, list)
	}
}

func TestFilesTogetherAreBounded(t *testing.T) {
	path := write(t, "app.yaml", "id: app\ndescription: !include_raw big\ntools: [!include_raw big]\n", "big", strings.Repeat("x", 600))
	_, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv, Limits: loader.Limits{TotalBytes: 1024}})
	if len(list) != 1 || list[0].Code != "QT009" || !strings.Contains(list[0].Message, "over 1 KiB") {
		t.Errorf("got %v", list)
	}
}
