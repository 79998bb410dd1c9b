package e2e_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// explanation is a class of differences and its reason, a row of differences.json.
type explanation struct {
	Class  string   `json:"class"`
	Reason string   `json:"reason"` // why the behavior here is right
	Names  []string `json:"names"`  // of documents, and of runs after "run: "
}

// readExplanations returns the declared differences. A difference that is not declared fails
// the test, and so does a declared one that does not exist.
func readExplanations(t *testing.T) []explanation {
	t.Helper()
	var all []explanation
	testkit.Must(t, json.Unmarshal([]byte(testkit.ReadFile(t, filepath.Join(parityFolder, "differences.json"))), &all))
	return all
}

// page returns docs/parity.md.
func (p *parity) page() string {
	var b strings.Builder
	documents, runs := 0, 0
	for _, c := range p.results {
		if c.run {
			runs++
		} else {
			documents++
		}
	}
	fmt.Fprintf(&b, `# Comparison with QType (Python)

<!-- TestParity in internal/e2e writes this page. -->

Both programs, QType (Python) 0.1.18 and this one, check the same %d documents and run the same %d flows with
the same inputs, with local servers in the place of the services that they call. The servers' answers repeat
the request, so that a different prompt is a different result. The table of differences is declared in the
test: a difference without a reason fails it, and a reason without a difference too.

## Documents

`, documents, runs)
	p.documentTable(&b)
	b.WriteString("\n## Runs\n\n")
	p.runTable(&b)
	b.WriteString("\n## Differences\n\n| Difference | Reason | QType (Python) | Here | Number | Where |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, e := range p.explanations {
		p.differenceRow(&b, e)
	}
	b.WriteString(`
QType (Python) ends with exit status 0 if rows of a run fail; here the status is 1 if a row
failed and 2 for a wrong command.

## Repeat it

` + "`QTYPE_ORIGINAL_EXAMPLES=FOLDER go test -run TestParity ./internal/e2e`" + ` compares with the record in
` + "`internal/e2e/testdata/parity`" + `, which has the digests of documents and rows. FOLDER is the source distribution of
QType (Python). With ` + "`QTYPE_ORIGINAL`" + `, a Python in which it is installed, the test runs it and compares it with the
record; with ` + "`-update-parity`" + ` too, it writes the record and this page.
`)
	return b.String()
}

func (p *parity) documentTable(b *strings.Builder) {
	b.WriteString("| Documents | Number | both accept | both refuse | only QType (Python) accepts | only this program accepts |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, group := range []string{groupExamples, groupTests, groupPages, groupChanged} {
		var n [4]int
		for _, c := range p.results {
			if !c.run && c.group == group {
				n[min(c.original.Status, 1)+2*min(c.status, 1)]++
			}
		}
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d |\n", group, n[0]+n[1]+n[2]+n[3], n[0], n[3], n[2], n[1])
	}
	crashes := 0
	for _, c := range p.results {
		if !c.run && c.original.Crash != "" && c.original.Crash != "SemanticError" {
			crashes++
		}
	}
	fmt.Fprintf(b, "\nMost blocks of pages are parts of documents, which both refuse. QType (Python) ends %d documents with an exception that it does not handle;\nthis program reports a position and a code for each of them.\n", crashes)
}

func (p *parity) runTable(b *strings.Builder) {
	equal, differing := 0, 0
	for _, c := range p.results {
		switch {
		case !c.run:
		case c.class == "":
			equal++
		default:
			differing++
		}
	}
	fmt.Fprintf(b, "| Runs | Number |\n| --- | --- |\n| same rows, same exit status | %d |\n| different, for a reason below | %d |\n", equal, differing)
	fmt.Fprintf(b, "\nNot compared are the examples %s, because the local servers do not have the protocols by which\nthe libraries of QType (Python) reach their services.\n", fmtNames(notCompared()))
}

func (p *parity) differenceRow(b *strings.Builder, e explanation) {
	var names []string
	original, here := map[string]bool{}, map[string]bool{}
	for _, c := range p.results {
		if c.class == e.Class {
			names = append(names, c.name)
			original[outcome(c.original.Status)], here[outcome(c.status)] = true, true
		}
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %d | %s |\n", e.Class, e.Reason, both(original), both(here), len(names), fmtNames(names))
}

// both names the outcomes of a class.
func both(outcomes map[string]bool) string {
	if len(outcomes) > 1 {
		return "accepted or refused"
	}
	for o := range outcomes {
		return o
	}
	return ""
}
