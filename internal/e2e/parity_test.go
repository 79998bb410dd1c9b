package e2e_test

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
)

var updateParity = flag.Bool("update-parity", false, "record what QType (Python) does, and rewrite docs/parity.md")

// parityFolder has the driver of QType (Python) and what was recorded of it.
const parityFolder = "internal/e2e/testdata/parity"

// verdict is what QType (Python) decided about a document, or did in a run. Documents of
// others are not part of this repository, so that it has their digests.
type verdict struct {
	Name   string   `json:"name"`
	Digest string   `json:"digest"`           // of the document, or of the inputs of a run
	Status int      `json:"status"`           // the exit status
	Crash  string   `json:"crash,omitempty"`  // the exception that the program does not handle
	Reason string   `json:"reason,omitempty"` // why a document was refused, see refusal
	Rows   []string `json:"rows,omitempty"`   // digests of the rows of a run; failed for one without a result
}

// TestParity checks the documents of QType (Python) and runs its flows, and compares the
// verdicts, the rows and the exit status with what QType (Python) did. All differences are
// declared in differences.json. With QTYPE_ORIGINAL, the Python that has QType (Python),
// it runs that program too, and compares with the record.
func TestParity(t *testing.T) {
	from := os.Getenv(examplesVariable)
	if from == "" {
		t.Skipf("SKIPPED, NOT TESTED: set %s to the source distribution of QType (Python) 0.1.18", examplesVariable)
	}
	c := &originalRun{clouds: startClouds(t), program: os.Getenv(programVariable), folder: t.TempDir()}
	c.prepare(t, from)
	for _, name := range []string{"tests", "README.md"} {
		copyPath(t, filepath.Join(from, name), filepath.Join(c.folder, name))
	}
	p := &parity{originalRun: c, documents: parityDocuments(t, c.folder), runs: parityRuns(t, c.folder), explanations: readExplanations(t)}
	recorded := readRecord(t)
	if python := os.Getenv("QTYPE_ORIGINAL"); python != "" {
		known := map[string]verdict{}
		if *updateParity {
			known = recorded
		}
		now := p.askOriginal(t, python, known)
		if *updateParity {
			recorded = now
		} else if d := gocmp.Diff(recorded, now); d != "" {
			t.Errorf("QType (Python) differs from the record (-record +now):\n%s", d)
		}
	}
	p.compare(t, recorded)
	page := p.page()
	if *updateParity {
		testkit.Must(t, os.WriteFile("docs/parity.md", []byte(page), 0o600))
	} else if d := gocmp.Diff(testkit.ReadFile(t, "docs/parity.md"), page); d != "" {
		t.Errorf("docs/parity.md is not up to date (-update-parity):\n%s", d)
	}
}

func copyPath(t *testing.T, from, to string) {
	t.Helper()
	if info, err := os.Stat(from); err == nil && info.IsDir() {
		testkit.Must(t, os.CopyFS(to, os.DirFS(from)))
		return
	}
	testkit.Must(t, os.WriteFile(to, []byte(testkit.ReadFile(t, from)), 0o600))
}

// parity compares two programs.
type parity struct {
	*originalRun
	documents []parityDocument
	runs      []parityRun
	results   []comparison

	explanations []explanation
}

func digestOf(v any) string {
	raw, ok := v.(string)
	if !ok {
		text, _ := json.Marshal(v)
		raw = string(text)
	}
	sum := sha256.Sum256([]byte(raw))
	return hex.EncodeToString(sum[:6])
}

// readRecord returns what was recorded, by name.
func readRecord(t *testing.T) map[string]verdict {
	t.Helper()
	all := map[string]verdict{}
	text, err := os.ReadFile(filepath.Join(parityFolder, "recorded.jsonl"))
	if err != nil && !*updateParity {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var v verdict
		testkit.Must(t, json.Unmarshal(line, &v))
		all[v.Name] = v
	}
	return all
}

func writeRecord(t *testing.T, all map[string]verdict) {
	t.Helper()
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	for _, v := range sortedByName(all) {
		testkit.Must(t, out.Encode(v))
	}
	testkit.Must(t, os.WriteFile(filepath.Join(parityFolder, "recorded.jsonl"), text.Bytes(), 0o600))
}

func sortedByName(all map[string]verdict) []verdict {
	var list []verdict
	for _, v := range all {
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b verdict) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// askOriginal returns what QType (Python) does with each document and run. It does not ask
// again for those that are known, and records each answer at once, so that a recording that
// was interrupted continues.
func (p *parity) askOriginal(t *testing.T, python string, known map[string]verdict) map[string]verdict {
	t.Helper()
	driver, err := filepath.Abs(filepath.Join(parityFolder, "original.py"))
	testkit.Must(t, err)
	var requests bytes.Buffer
	out := json.NewEncoder(&requests)
	digests, all := map[string]string{}, map[string]verdict{}
	ask := func(name, digest string, request map[string]any) {
		digests[name] = digest
		if v, ok := known[name]; ok && v.Digest == digest {
			all[name] = v
			return
		}
		request["name"], request["folder"] = name, p.folder
		testkit.Must(t, out.Encode(request))
	}
	for _, d := range p.documents {
		ask(d.name, digestOf(d.text), map[string]any{"document": d.path})
	}
	for _, r := range p.runs {
		ask("run: "+r.name, digestOf(r.inputs), map[string]any{"document": r.document, "run": true, "flow": r.flow, "inputs": r.inputs})
	}
	cmd := exec.CommandContext(t.Context(), python, driver) // it takes longer than testkit.Command allows
	var problems bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stderr = p.folder, &requests, &problems
	cmd.Env = append(slices.Clone(p.env), "AWS_CA_BUNDLE="+p.ca, "REQUESTS_CA_BUNDLE="+p.ca, "NO_PROXY=localhost,127.0.0.1")
	pipe, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var answer struct {
			verdict
			Log  string           `json:"log"`
			Rows []map[string]any `json:"rows"`
		}
		testkit.Must(t, json.Unmarshal(lines.Bytes(), &answer))
		v := answer.verdict
		v.Digest, v.Reason = digests[v.Name], refusal(v, answer.Log)
		if strings.HasPrefix(v.Name, "run: ") {
			t.Logf("%s: %v %s %v %.500s", v.Name, v.Status, v.Crash, answer.Rows, answer.Log)
		}
		v.Rows = rowDigests(answer.Rows)
		all[v.Name] = v
		if *updateParity {
			writeRecord(t, all)
		}
	}
	if err := cmd.Wait(); err != nil || len(all) != len(digests) {
		t.Fatalf("%d of %d answers: %v\n%s", len(all), len(digests), err, problems.String())
	}
	return all
}

// refusal returns the kind of reason why QType (Python) did not accept a document, empty
// where it does, and how a run failed.
func refusal(v verdict, log string) string {
	for _, kind := range []struct{ text, reason string }{
		{"is required but not set", "variable of the environment"},
		{"Extra inputs are not permitted", "unknown key or value"},
		{"does not match any of the expected tags", "unknown key or value"},
		{"Input should be", "wrong value"},
	} {
		if v.Status != 0 && strings.Contains(log, kind.text) {
			return kind.reason
		}
	}
	if v.Status != 0 {
		return cmp.Or(v.Crash, "other")
	}
	return ""
}

// rowDigests returns a digest for each row of a result.
func rowDigests(rows []map[string]any) []string {
	var all []string
	for _, row := range rows {
		failed := row["error"] != nil
		delete(row, "error")
		delete(row, "row")
		delete(row, "session")
		for name, v := range row {
			if row[name] = canonical(v); row[name] == nil {
				delete(row, name)
			}
		}
		if failed {
			all = append(all, "failed")
		} else {
			all = append(all, digestOf(row))
		}
	}
	return all
}

// canonical returns a value in the form that is the same in both programs: JSON in a text
// as its value, and no keys without a value.
func canonical(v any) any {
	switch v := v.(type) {
	case string:
		var inside any
		if text := strings.TrimSpace(v); (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) && json.Unmarshal([]byte(text), &inside) == nil {
			return canonical(inside)
		}
	case []any:
		for i := range v {
			v[i] = canonical(v[i])
		}
	case map[string]any:
		for name := range v {
			if v[name] = canonical(v[name]); v[name] == nil {
				delete(v, name)
			}
		}
	}
	return v
}

// validateHere checks a document with qtype.
func (p *parity) validateHere(t *testing.T, d parityDocument) (status int, codes []string) {
	t.Helper()
	stdout, stderr, err := p.command(t, "validate", "--format", "json", "--offline", d.path)
	var found []struct{ Code, Severity string }
	testkit.Must(t, json.Unmarshal([]byte(stdout), &found))
	for _, f := range found {
		if f.Severity == "error" && !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	if status = exitStatus(t, err); (status == 0) != (len(codes) == 0) {
		t.Errorf("%s: status %d with %v\n%s", d.name, status, codes, stderr)
	}
	return status, codes
}

// runHere runs a flow with qtype and returns its exit status and the digests of the rows.
func (p *parity) runHere(t *testing.T, r parityRun) (status int, rows []string) {
	t.Helper()
	raw, err := json.Marshal(r.inputs)
	testkit.Must(t, err)
	args := []string{"run", r.document, "--ephemeral", "--session", "one", "--format", "jsonl", "--input", string(raw)}
	if r.flow != "" {
		args = append(args, "--flow", r.flow)
	}
	stdout, stderr, err := p.command(t, args...)
	var values []map[string]any
	for line := range strings.Lines(stdout) {
		var row map[string]any
		testkit.Must(t, json.Unmarshal([]byte(line), &row))
		values = append(values, row)
	}
	status = exitStatus(t, err)
	t.Logf("here: %s: %d %v %.300s", r.name, status, values, stderr)
	return status, rowDigests(values)
}

func exitStatus(t *testing.T, err error) int {
	t.Helper()
	if failed, ok := err.(interface{ ExitCode() int }); ok {
		return failed.ExitCode()
	}
	testkit.Must(t, err)
	return 0
}

// comparison is what both programs did with a document or a run.
type comparison struct {
	name, group string
	run         bool
	original    verdict
	status      int      // here
	codes, rows []string // here
	class       string   // of the difference; empty if there is none
}

// compare checks that each difference is declared.
func (p *parity) compare(t *testing.T, recorded map[string]verdict) {
	t.Helper()
	used := map[string]bool{}
	add := func(c comparison, name, sum string) {
		var known bool
		if c.original, known = recorded[name]; !known || c.original.Digest != sum {
			t.Errorf("%s was not recorded (-update-parity)", name)
			return
		}
		for _, e := range p.explanations {
			if slices.Contains(e.Names, name) {
				c.class, used[name] = e.Class, true
			}
		}
		if c.differs() != (c.class != "") {
			t.Errorf("%s: class %q: original %+v, here status %d %v %v", name, c.class, c.original, c.status, c.codes, c.rows)
		}
		p.results = append(p.results, c)
	}
	for _, d := range p.documents {
		status, codes := p.validateHere(t, d)
		add(comparison{name: d.name, group: d.group, status: status, codes: codes}, d.name, digestOf(d.text))
	}
	for _, r := range p.runs {
		status, rows := p.runHere(t, r)
		add(comparison{name: r.name, run: true, status: status, rows: rows}, "run: "+r.name, digestOf(r.inputs))
	}
	for _, e := range p.explanations {
		for _, name := range e.Names {
			if !used[name] {
				t.Errorf("%q explains %s, which was not compared", e.Class, name)
			}
		}
	}
	if len(recorded) != len(p.results) {
		t.Errorf("%d verdicts are recorded, %d are needed", len(recorded), len(p.results))
	}
}

// differs reports whether the programs differ: one accepts and the other refuses, or the
// rows of a run or its exit status are different.
func (c comparison) differs() bool {
	return (c.status == 0) != (c.original.Status == 0) || c.run && !slices.Equal(c.rows, c.original.Rows)
}

// outcome is a phrase for what a program did.
func outcome(status int) string {
	if status == 0 {
		return "accepted"
	}
	return "refused"
}

// fmtNames lists names for a table.
func fmtNames(names []string) string {
	const most = 8
	text := "`" + strings.Join(names[:min(len(names), most)], "`, `") + "`"
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
