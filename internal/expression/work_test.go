package expression_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/internal/expression"
	"github.com/qtype-dev/qtype/spec"
)

// compiled compiles an expression of the list l.
func compiled(t *testing.T, text string) *expression.Program {
	t.Helper()
	f, err := expression.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := f.Compile(map[string]spec.Type{"l": {Elem: &spec.Type{Name: "int"}}}, expression.Writer{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// numbers returns a list that a caller has sent.
func numbers(n int) map[string]any {
	l := make([]any, n)
	for i := range l {
		l[i] = i
	}
	return map[string]any{"l": l}
}

// TestRun_Canceled stops an expression that would take hours.
func TestRun_Canceled(t *testing.T) {
	p := compiled(t, "count(l, all(l, all(l, # >= 0)))")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(0, cancel)
		synctest.Wait()
		if _, err := p.Run(ctx, numbers(20_000)); err == nil || ctx.Err() == nil {
			t.Errorf("got %v", err)
		}
	})
	if _, err := p.Run(t.Context(), numbers(20_000)); err == nil || !strings.Contains(err.Error(), "steps") {
		t.Errorf("without an end of the context: %v", err)
	}
}

// TestRun_Work limits the bytes that an expression makes.
func TestRun_Work(t *testing.T) {
	for text, want := range map[string]string{
		`len(join(map(1..100000, repeat("b", 100000)), ""))`: "MiB",
		`count(1..100000, len(repeat("b", 100000)) > 0)`:     "MiB",
		`len(reduce(1..100000, #acc + "bbbbbbbbbb", ""))`:    "MiB",
		`count(1..100, len(repeat("b", 1000)) > 0)`:          "",
		`sum(map(filter(l, # % 2 == 0), # * 2))`:             "",
		`any(l, # == 3) ? find(l, # == 3) : l[0]`:            "",
	} {
		if _, err := compiled(t, text).Run(t.Context(), numbers(1000)); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
