package promptcontext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
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

// TestExport_Facts checks that a session whose messages were read for facts can be imported: it has an
// event for each time.
func TestExport_Facts(t *testing.T) {
	script := &scriptedExtractor{}
	m := contextual(t, memory.NewInProcess(), 400, promptcontext.Block{Kind: promptcontext.Facts, Priority: 1, Extractor: script, MaxFacts: 3})
	long := strings.Repeat(" filler", 30)
	script.next = []promptcontext.FactChange{{Op: "add", Text: "The user lives in Paris.", Message: 1, Quote: "I live in Paris"}}
	say(t, m, "s", "I live in Paris."+long, "I like tea."+long)
	say(t, m, "s", "And now?"+long, "Good."+long)
	var out, again strings.Builder
	testkit.Must(t, transcript.Export(t.Context(), m, "s", &out))
	testkit.Must(t, transcript.Import(t.Context(), m, "copy", strings.NewReader(out.String())))
	testkit.Must(t, transcript.Export(t.Context(), m, "copy", &again))
	if d := cmp.Diff(out.String(), again.String()); d != "" || !strings.Contains(out.String(), `"kind":"facts"`) {
		t.Errorf("the copy differs from\n%s\n%s", out.String(), d)
	}
	facts, err := promptcontext.FactsOf(t.Context(), m, "copy")
	testkit.Must(t, err)
	if len(facts) != 1 || facts[0].Text() != "The user lives in Paris." {
		t.Errorf("the facts of the copy are %+v", facts)
	}
}
