package promptcontext_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/promptcontext"
	"github.com/qtype-dev/qtype/memory/transcript"
)

// TestImport_InvalidFacts checks that the facts of a transcript that another program wrote are
// checked before anything is stored.
func TestImport_InvalidFacts(t *testing.T) {
	for facts, want := range map[string]string{
		`[]`: "cannot unmarshal array",
		`{"facts":[{"id":"","versions":[{"text":"a"}]}],"next":1,"to":0}`:                                         `the id "" of a fact is empty`,
		`{"facts":[{"id":"f1","versions":[]}],"next":1,"to":0}`:                                                   "fact f1 has 0 versions",
		`{"facts":[{"id":"f1","versions":[{"text":"two\nlines"}]}],"next":1,"to":0}`:                              "in one line",
		`{"facts":[{"id":"f1","versions":[{"text":"a"}]}],"next":0,"to":0}`:                                       "not those of a list",
		`{"facts":[],"next":0,"to":-1}`:                                                                           "not those of a list",
		`{"fact":[]}`:                                                                                             `unknown field "fact"`,
		`{"facts":[{"id":"f1","versions":[{"text":"a"}]},{"id":"f1","versions":[{"text":"b"}]}],"next":2,"to":0}`: "that of another one",
	} {
		m, err := memory.New(memory.Config{ID: "m", Counter: runes{}, Context: promptcontext.New(nil, promptcontext.Block{Kind: promptcontext.Facts, Priority: 1, Extractor: &scriptedExtractor{}})}, memory.NewInProcess())
		testkit.Must(t, err)
		line := `{"op":"context","set":{"facts":` + strings.ReplaceAll(facts, "\n", `\n`) + `}}`
		err = transcript.Import(t.Context(), m, "s", strings.NewReader(line))
		if err == nil || !strings.HasPrefix(err.Error(), "line 1: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", facts, err, want)
		}
		if info, err := m.Info(t.Context(), "s"); err != nil || info.Session != "" {
			t.Errorf("%s: the session exists: %+v, %v", facts, info, err)
		}
	}
}
