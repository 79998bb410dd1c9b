package diag_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-multierror"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

func at(f *source.File, line int) source.Span {
	return source.Span{File: f, Start: source.Pos{Line: line, Column: 1}, End: source.Pos{Line: line, Column: 2}}
}

func TestList_Sort_FollowsIncludes(t *testing.T) {
	root := &source.File{Path: "root"}
	inner := &source.File{Path: "a-inner", From: at(root, 5)}
	list := diag.List{
		{Message: "after", Span: at(root, 6)}, {Message: "inside", Span: at(inner, 90)},
		{Message: "before", Span: at(root, 4)}, {Message: "first of two", Span: at(root, 2)}, {Message: "second of two", Span: at(root, 2)},
	}
	list.Sort()
	var got []string
	for _, d := range list {
		got = append(got, d.Message)
	}
	if d := cmp.Diff([]string{"first of two", "second of two", "before", "inside", "after"}, got); d != "" {
		t.Error(d)
	}
}

func TestList_Counts(t *testing.T) {
	f := &source.File{Path: "f.yaml"}
	list := diag.List{
		{Code: "QT1", Severity: diag.Error, Message: "one", Hint: "fix it", Span: at(f, 1)},
		{Code: "QT2", Severity: diag.Warning, Message: "two", Fixes: []diag.Fix{{Span: at(f, 2), NewText: "deux"}}, Span: at(f, 2)},
		{Code: "QT3", Severity: diag.Error, Message: "three"},
	}
	if list.Errors() != 2 || list.Warnings() != 1 || list.Files() != 1 || list.Fixable() != 1 {
		t.Errorf("counted %d errors, %d warnings, %d files, %d fixable", list.Errors(), list.Warnings(), list.Files(), list.Fixable())
	}
	if got := list.AsErrors().Errors(); got != 3 {
		t.Errorf("AsErrors has %d errors", got)
	}
}

func TestList_IsAnError(t *testing.T) {
	f := &source.File{Path: "f.yaml"}
	list := diag.List{
		{Code: "QT1", Severity: diag.Error, Message: "one", Hint: "fix it", Span: at(f, 1)},
		{Code: "QT2", Severity: diag.Warning, Message: "two", Span: at(f, 2)},
		{Code: "QT3", Severity: diag.Error, Message: "three", Related: []diag.Related{{Message: "here"}}},
	}
	errs := diag.List{list[0], list[2]}
	if d := cmp.Diff("f.yaml:1:1: one; fix it [QT1]\nthree [QT3]", list.Err().Error()); d != "" {
		t.Error(d)
	}
	if (diag.List{}).Unwrap() != nil {
		t.Error("an empty list wraps an error")
	}
	for name, err := range map[string]error{
		"list":    list.Err(),
		"wrapped": fmt.Errorf("cannot open it: %w", list.Err()),
		"joined":  errors.Join(errors.New("other"), list.Err()),
		"multi":   multierror.Append(errors.New("other"), list.Err()),
	} {
		t.Run(name, func(t *testing.T) {
			var found diag.List
			if !errors.As(err, &found) || !found.Is(errs) {
				t.Errorf("errors.As found the list %v", found)
			}
			var first diag.Diagnostic
			if !errors.As(err, &first) || first.Code != "QT1" {
				t.Errorf("errors.As found the diagnostic %v", first)
			}
			var multi *multierror.Error
			if !errors.As(err, &multi) {
				t.Error("errors.As found no *multierror.Error")
			}
			if !errors.Is(err, list[0]) || !errors.Is(err, list[2]) || !errors.Is(err, errs) {
				t.Error("errors.Is misses a diagnostic or the list")
			}
			if errors.Is(err, list[1]) || errors.Is(err, list) {
				t.Error("errors.Is finds a warning, which is not an error")
			}
			if got := diag.FromError(err); !got.Is(errs) {
				t.Errorf("FromError found %v", got)
			}
		})
	}
}

func TestFromError_CollectsAllLists(t *testing.T) {
	one, two := diag.Diagnostic{Code: "QT1", Severity: diag.Error}, diag.Diagnostic{Code: "QT2", Severity: diag.Error}
	err := errors.Join(diag.List{one}.Err(), fmt.Errorf("second: %w", diag.List{two, one}.Err()), two)
	if got, want := diag.FromError(err), (diag.List{one, two, one, two}); !got.Is(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestList_Err_NilWithoutErrors(t *testing.T) {
	if err := (diag.List{{Severity: diag.Warning}}).Err(); err != nil {
		t.Errorf("got %v", err)
	}
	for _, err := range []error{nil, errors.New("other")} {
		if got := diag.FromError(err); got != nil {
			t.Errorf("FromError(%v) = %v", err, got)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"token_limit", "token_flush_size", "chat_history_token_ratio", "id", "chat_memory", "LLMInference", "Echo"}
	for given, want := range map[string]string{
		"chat_memry": "chat_memory", "chat_memroy": "chat_memory", "token_limits": "token_limit", "tokenlimit": "token_limit",
		"llminference": "LLMInference", "echo": "Echo", "ECHO": "Echo", "ids": "id", "Id": "id", "ratio": "chat_history_token_ratio", "inference": "LLMInference", "chat_memory_of_mine": "chat_memory", "x": "", "retries": "", "": "", "zzzzzzzzzz": "",
		"chat_memory": "", // an exact match is not a suggestion
	} {
		if got := diag.Nearest(given, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", given, got, want)
		}
	}
	if got := diag.Nearest("ab", []string{"ad", "ac"}); got != "ac" {
		t.Errorf("of equally near candidates want the first in alphabetical order, got %q", got)
	}
	if got := diag.Nearest(strings.Repeat("a", 1<<20), []string{strings.Repeat("a", 1<<20) + "b"}); got != "" {
		t.Error("a name of a megabyte has a suggestion")
	}
}

func TestNearest_FindsOneTypo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{5,12}`).Draw(t, "word")
		i := rapid.IntRange(0, len(word)-2).Draw(t, "at")
		typo := map[string]string{
			"dropped": word[:i] + word[i+1:],
			"doubled": word[:i] + word[i:i+1] + word[i:],
			"swapped": word[:i] + word[i+1:i+2] + word[i:i+1] + word[i+2:],
			"changed": word[:i] + "_" + word[i+1:],
		}[rapid.SampledFrom([]string{"dropped", "doubled", "swapped", "changed"}).Draw(t, "how")]
		if typo == word {
			return
		}
		if got := diag.Nearest(typo, []string{"0123456789", word, "ABCDEFGHI"}); got != word {
			t.Errorf("Nearest(%q) = %q, want %q", typo, got, word)
		}
	})
}
