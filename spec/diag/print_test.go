package diag_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

func TestJSON_Keys(t *testing.T) {
	var b strings.Builder
	if err := diag.JSON(&b, diag.List{memoryDiagnostic(t), {Code: "QT001", Severity: diag.Warning, Message: "m"}}); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"code": "QT202", "severity": "error", "message": `no memory has the id "chat_memry"; did you mean "chat_memory"?`, "file": "app.qtype.yaml",
			"line": 24.0, "column": 17.0, "end_line": 24.0, "end_column": 27.0, "suggestion": "chat_memory"},
		{"code": "QT001", "severity": "warning", "message": "m", "file": ""},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestJSON_EmptyList(t *testing.T) {
	var b strings.Builder
	if err := diag.JSON(&b, nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(b.String()); got != "[]" {
		t.Errorf("got %s", got)
	}
}

func TestGitHub(t *testing.T) {
	odd := &source.File{Path: "a,b:c%.yaml"}
	at := source.Span{File: odd, Start: source.Pos{Line: 1, Column: 2}, End: source.Pos{Line: 1, Column: 3}}
	var b strings.Builder
	err := diag.GitHub(&b, diag.List{
		memoryDiagnostic(t),
		{Code: "QT1", Severity: diag.Warning, Span: at, Message: "100%: bad, really"},
		{Code: "QT2", Severity: diag.Error, Message: "nowhere"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `::error file=app.qtype.yaml,line=24,col=17,endLine=24,endColumn=27,title=QT202::no memory has the id "chat_memry"; did you mean "chat_memory"?
::warning file=a%2Cb%3Ac%25.yaml,line=1,col=2,endLine=1,endColumn=3,title=QT1::100%25: bad, really
::error title=QT2::nowhere
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

func TestSARIF(t *testing.T) {
	rule := diag.Rule{Code: "QT202", Severity: diag.Error, Title: "a reference names nothing", Doc: "Write the id."}
	var b strings.Builder
	if err := diag.SARIF(&b, diag.List{memoryDiagnostic(t)}, diag.Tool{Version: "1.2.3", Rules: []diag.Rule{rule}}); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name, Version string
					Rules         []struct{ ID string }
				}
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn, EndLine, EndColumn int }
					}
				}
				RelatedLocations []struct{ Message struct{ Text string } }
				Fixes            []struct {
					ArtifactChanges []struct {
						Replacements []struct{ InsertedContent struct{ Text string } }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	result := run.Results[0]
	position := result.Locations[0].PhysicalLocation
	got := []any{log.Version, run.Tool.Driver.Name, run.Tool.Driver.Rules[result.RuleIndex].ID, result.RuleID, result.Level,
		position.ArtifactLocation.URI, position.Region.StartLine, position.Region.StartColumn, position.Region.EndColumn,
		result.RelatedLocations[0].Message.Text, result.Fixes[0].ArtifactChanges[0].Replacements[0].InsertedContent.Text}
	want := []any{"2.1.0", "qtype", "QT202", "QT202", "error", "app.qtype.yaml", 24, 17, 27, "a memory declared here", "chat_memory"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
