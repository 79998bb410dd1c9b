package loader_test

import (
	"context"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
)

// loadText loads a document that needs no environment.
func loadText(text string) (*loader.Result, diag.List) {
	return loader.LoadBytes(context.Background(), "app.qtype.yaml", []byte(text), loader.Options{NoDotEnv: true})
}

func TestAlias_MeansTheSameAsTheKey(t *testing.T) {
	loaded, found := loadText("id: shop\nmemories:\n  - {id: chat, turns: reject}\n")
	memory := loaded.Document.Application.Memories[0]
	if memory.Turns != "reject" {
		t.Errorf("turns is %q", memory.Turns)
	}
	if len(found) != 1 || found[0].Code != "QT132" || found[0].Severity != diag.Warning {
		t.Fatalf("diagnostics: %v", found)
	}
	if want := `the key "turns" of memory "chat" is now called "concurrent_turns"`; found[0].Message != want {
		t.Errorf("message %q, want %q", found[0].Message, want)
	}
	if fixes := found[0].Fixes; len(fixes) != 1 || fixes[0].NewText != "concurrent_turns" || fixes[0].Span.Start.Column != 16 {
		t.Errorf("fixes: %+v", fixes)
	}
	if _, ok := memory.Position().Lookup("concurrent_turns"); !ok {
		t.Error("the key has no position under its name of today")
	}
}

func TestAlias_ChecksTheValue(t *testing.T) {
	_, found := loadText("id: shop\nmemories:\n  - {id: chat, turns: never}\n")
	var codes []string
	for _, d := range found {
		codes = append(codes, d.Code)
	}
	if strings.Join(codes, " ") != "QT132 QT107" {
		t.Errorf("codes %v: %v", codes, found)
	}
}

func TestAlias_BothNamesAreAnError(t *testing.T) {
	loaded, found := loadText("id: shop\nmemories:\n  - {id: chat, turns: reject, concurrent_turns: interrupt}\n")
	if len(found) != 1 || found[0].Code != "QT132" || found[0].Severity != diag.Error || len(found[0].Fixes) != 0 {
		t.Fatalf("diagnostics: %v", found)
	}
	if got := loaded.Document.Application.Memories[0].Turns; got != "interrupt" {
		t.Errorf("turns is %q", got)
	}
}
