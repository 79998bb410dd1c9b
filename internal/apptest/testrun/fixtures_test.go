package testrun_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // makes the database of a fixture

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/apptest/testrun"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
)

// fixturesApplication has a flow for each step that uses files. FOLDER is that of the document.
const fixturesApplication = `id: fixtures
tools: [{type: CommandTool, id: start, name: start, description: Starts a program, program: touch, args: [FOLDER/started], outputs: [{id: r, type: text}]}]
flows:
  - {id: read, variables: [{id: q, type: 'text?'}, {id: a, type: text}], inputs: [q], outputs: [a], steps: [{type: FileSource, id: load, path: {uri: FOLDER/data/in.csv}, outputs: [a]}]}
  - {id: row, variables: [{id: q, type: text}, {id: a, type: text}], inputs: [q], outputs: [a], steps: [{type: FileSource, id: load_row, path: q, base: data, outputs: [a]}]}
  - {id: bucket, variables: [{id: q, type: 'text?'}, {id: a, type: text}], inputs: [q], outputs: [a], steps: [{type: FileSource, id: load_remote, path: {uri: "https://data.example/in.csv"}, outputs: [a]}]}
  - {id: write, variables: [{id: q, type: text}, {id: to, type: text}], inputs: [q], outputs: [to], steps: [{type: FileWriter, id: save, path: {uri: FOLDER/out/new.csv}, inputs: [q], outputs: [to]}]}
  - {id: reread, variables: [{id: q, type: text}], inputs: [], outputs: [q], steps: [{type: FileSource, id: load_new, path: {uri: FOLDER/out/new.csv}, outputs: [q]}]}
  - {id: query, variables: [{id: q, type: 'text?'}, {id: a, type: text}], inputs: [q], outputs: [a], steps: [{type: SQLSource, id: select, connection: "sqlite:///FOLDER/data/people.db", query: "select a from t", outputs: [a]}]}
  - {id: server, variables: [{id: q, type: 'text?'}, {id: a, type: text}], inputs: [q], outputs: [a], steps: [{type: SQLSource, id: ask, connection: "postgres://db.example/x", query: "select 'x' as a", outputs: [a]}]}
  - {id: documents, variables: [{id: q, type: 'text?'}, {id: d, type: RAGDocument}, {id: p, type: RAGDocument}], inputs: [q], outputs: [d], steps: [{type: DocumentSource, id: pages, reader_module: directory, args: {input_dir: FOLDER/docs}, outputs: [d]}]}
  - {id: program, variables: [{id: q, type: 'text?'}, {id: a, type: text}], inputs: [q], outputs: [a], steps: [{type: InvokeTool, id: call, tool: start, output_bindings: {r: a}}]}
`

// fixtures makes a folder with the application, a test of some turns, fixtures, and other
// files at the real places, and runs the test there.
func fixtures(t *testing.T, keys string, turns ...string) (folder, messages string) {
	t.Helper()
	folder = t.TempDir()
	t.Chdir(folder)
	for name, text := range map[string]string{
		"app.qtype.yaml":            strings.ReplaceAll(fixturesApplication, "FOLDER", folder),
		"app.qtype-test.yaml":       keys + "tests:\n  - name: it\n    turns:\n      - " + strings.Join(turns, "\n      - ") + "\n",
		"data/in.csv":               "a\nreal\n",
		"docs/a.txt":                "real",
		"files/data/in.csv":         "a\nfixture\n",
		"files/data.example/in.csv": "a\nremote\n",
		"files/docs/a.txt":          "fixture",
		"expected.csv":              "q\nhello\n",
	} {
		path := filepath.Join(folder, name)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	db, err := sql.Open("sqlite", filepath.Join(folder, "files/data/people.db"))
	testkit.Must(t, err)
	_, err = db.ExecContext(t.Context(), "create table t(a); insert into t values ('fixture')")
	testkit.Must(t, err)
	testkit.Must(t, db.Close())
	reports, err := qtype.Test(t.Context(), []string{folder}, qtype.TestOptions{})
	testkit.Must(t, err)
	for _, r := range reports {
		for _, d := range r.Diagnostics {
			messages += d.Error() + "\n"
		}
		for _, o := range r.Outcomes {
			for _, d := range o.Diagnostics {
				messages += d.Error() + "\n"
			}
		}
	}
	return folder, messages
}

func TestFixtures(t *testing.T) {
	folder, messages := fixtures(t, "fixtures: files\n",
		`{flow: read, expect: ['a == "fixture"']}`,
		`{flow: row, input: in.csv, expect: ['a == "fixture"']}`,
		`{flow: row, input: ../../secret.csv, fails: is outside of the base folder}`,
		`{flow: row, input: none.csv, fails: "none.csv: (no such|does not)"}`,
		`{flow: bucket, expect: ['a == "remote"']}`,
		`{flow: query, expect: ['a == "fixture"']}`,
		`{flow: documents, rows: 1}`,
		`{flow: write, input: hello, expect: ['to endsWith "/out/new.csv"'], files: [{path: out/new.csv, same_as: expected.csv, contains: [hello], not_contains: [bye]}]}`,
		`{flow: reread, expect: ['q == "hello"']}`,
	)
	if messages != "" {
		t.Error(messages)
	}
	for _, name := range []string{"out", "files/out", "started"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			t.Errorf("the test has written %s", name)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "qtype-test-*")); len(left) > 0 && os.Getenv("QTYPE_CI") == "" {
		t.Logf("temporary folders, possibly of other tests: %q", left)
	}
}

func TestFixtures_Refused(t *testing.T) {
	for _, c := range []struct{ keys, turn, want string }{
		{"", "{flow: read}", "write fixtures: with its path"},
		{"fixtures: files\n", "{flow: server}", "step ask (SQLSource) queries a database, which tests may not; if it should, write allow: [ask]"},
		{"fixtures: files\n", "{flow: program}", "starts the program touch, which tests may not"},
		{"fixtures: ../files\n", "{flow: read}", "fixtures must be a folder in the folder of the test file"},
		{"fixtures: missing\n", "{flow: read}", `the folder "missing" does not exist`},
		{"", "{flow: read, files: [{path: x}]}", "the test has no fixtures, so that it writes no files"},
		{"fixtures: files\n", "{flow: read, files: [{path: x, same_as: ../x}]}", "same_as must be a file in the folder of the test file"},
		{"fixtures: files\n", "{flow: read, files: [{path: out/new.csv}]}", "the file out/new.csv does not exist"},
		{"fixtures: files\n", "{flow: write, input: bye, files: [{path: out/new.csv, same_as: expected.csv}]}", "the file out/new.csv differs from expected.csv"},
		{"fixtures: files\n", "{flow: write, input: bye, files: [{path: out/new.csv, contains: [hello]}]}", `the file out/new.csv does not contain "hello"`},
		{"fixtures: files\n", "{flow: write, input: bye, files: [{path: out/new.csv, not_contains: [bye]}]}", `the file out/new.csv contains "bye"`},
	} {
		if _, got := fixtures(t, c.keys, c.turn); !strings.Contains(got, c.want) {
			t.Errorf("%s%s: %q, want %q", c.keys, c.turn, got, c.want)
		}
	}
}

// TestFixtures_Link has a link in the fixtures to a file outside of them.
func TestFixtures_Link(t *testing.T) {
	folder, _ := fixtures(t, "fixtures: files\n", "{flow: read}")
	testkit.Must(t, os.Symlink("/etc/passwd", filepath.Join(folder, "files", "link.csv")))
	reports, err := qtype.Test(t.Context(), []string{folder}, qtype.TestOptions{})
	testkit.Must(t, err)
	if got := reports[0].Outcomes[0].Diagnostics[0].Error(); !strings.Contains(got, "link.csv is neither a file nor a folder") {
		t.Error(got)
	}
}

// TestJUnit_WarningFirst checks that the message of a file that cannot be run is an error, not a
// warning before it.
func TestJUnit_WarningFirst(t *testing.T) {
	path := writeFiles(t, "tools: [{id: find_order, result: {other: x}}]\ntests: [{name: a, flow: nowhere, turns: [{input: x}]}]\n")
	_, list := testrun.Load(t.Context(), path, loader.Options{}, open)
	var b strings.Builder
	testkit.Must(t, testrun.JUnit(&b, []testrun.Report{{Path: path, Diagnostics: list}}))
	if !strings.Contains(b.String(), `type="QT801"`) || !strings.Contains(b.String(), "QT807") {
		t.Errorf("got %s", b.String())
	}
}
