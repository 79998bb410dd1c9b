package diag_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

func at(f *source.File, line int) source.Span {
	return source.Span{File: f, Start: source.Pos{Line: line, Column: 1}, End: source.Pos{Line: line, Column: 2}}
}

func TestSortFollowsTheReaderThroughIncludes(t *testing.T) {
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

func TestListAsAnError(t *testing.T) {
	f := &source.File{Path: "f.yaml"}
	list := diag.List{
		{Code: "QT1", Severity: diag.Error, Message: "one", Hint: "mend it", Span: at(f, 1)},
		{Code: "QT2", Severity: diag.Warning, Message: "two", Fixes: []diag.Fix{{Span: at(f, 2), NewText: "deux"}}, Span: at(f, 2)},
		{Code: "QT3", Severity: diag.Error, Message: "three"},
	}
	if list.Errors() != 2 || list.Warnings() != 1 || list.Files() != 1 || list.Fixable() != 1 {
		t.Errorf("counted %d errors, %d warnings, %d files, %d mendable", list.Errors(), list.Warnings(), list.Files(), list.Fixable())
	}
	err := fmt.Errorf("cannot open it: %w", list.Err())
	var first diag.Diagnostic
	if !errors.As(err, &first) || first.Code != "QT1" {
		t.Errorf("errors.As found %v", first)
	}
	if got := diag.FromError(err); len(got) != 2 || got[1].Code != "QT3" {
		t.Errorf("Of found %v", got)
	}
	if d := cmp.Diff("f.yaml:1:1: one; mend it [QT1]\nthree [QT3]", list.Err().Error()); d != "" {
		t.Error(d)
	}
	if got := list.AsErrors().Errors(); got != 3 {
		t.Errorf("strict has %d errors", got)
	}
}

func TestListWithoutErrorsIsNoError(t *testing.T) {
	if err := (diag.List{{Severity: diag.Warning}}).Err(); err != nil {
		t.Errorf("got %v", err)
	}
	if got := diag.FromError(errors.New("other")); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"token_limit", "token_flush_size", "chat_history_token_ratio", "id", "chat_memory", "LLMInference", "Echo"}
	for given, want := range map[string]string{
		"chat_memry": "chat_memory", "chat_memroy": "chat_memory", "token_limits": "token_limit", "tokenlimit": "token_limit",
		"llminference": "LLMInference", "echo": "Echo", "ECHO": "Echo", "ids": "id", "Id": "id", "ratio": "chat_history_token_ratio", "inference": "LLMInference", "chat_memory_of_mine": "chat_memory", "x": "", "retries": "", "": "", "zzzzzzzzzz": "",
		"chat_memory": "", // it is there, so nothing is nearer
	} {
		if got := diag.Nearest(given, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", given, got, want)
		}
	}
	if got := diag.Nearest("ab", []string{"ad", "ac"}); got != "ac" {
		t.Errorf("of equally near ones the first in the alphabet is wanted, got %q", got)
	}
	if got := diag.Nearest(strings.Repeat("a", 1<<20), []string{strings.Repeat("a", 1<<20) + "b"}); got != "" {
		t.Error("a megabyte is no name")
	}
}

// TestNearestFindsOneTypo: whatever letter of a word goes wrong, the word is found.
func TestNearestFindsOneTypo(t *testing.T) {
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
