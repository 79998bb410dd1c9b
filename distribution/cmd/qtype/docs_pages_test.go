//go:build unix

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// generated are the pages of docs that this test leaves out. TestHelpExamples runs the
// commands of commands.md; the others have none.
var generated = []string{"commands.md", "reference", "decisions"}

// guidePages returns the pages of the documentation, by their paths in the module.
func guidePages(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md"}
	testkit.Must(t, fs.WalkDir(os.DirFS("../../.."), "docs", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains(generated, strings.TrimPrefix(path, "docs/")):
			if d.IsDir() {
				return fs.SkipDir
			}
		case filepath.Ext(path) == ".md":
			pages = append(pages, path)
		}
		return nil
	}))
	return pages
}

// skipReasons are the values of skip= of a block that is not run here.
var skipReasons = []string{
	"install",   // installs programs
	"services",  // needs a provider, a cloud or a database
	"running",   // runs until it is ended
	"elsewhere", // the programs of others, or in other tests
}

// A fence of a page: its info string, and its text.
var fence = regexp.MustCompile("(?ms)^```([a-z]+)([^\n]*)\n(.*?)^```$")

// TestDocs_Pages runs the commands of each page, from the first block to the last, in a folder
// that is empty, or a copy of the page's folder in testdata/pages: the files that the page
// takes for granted, after the commands of its before.sh.
//
//   - a block with file=NAME in its info string is written to that file,
//   - a block sh is run and must succeed; status=N requires another exit status,
//   - a block text after it must be part of its output, where … is any text,
//   - sh server is a server that ends with the page; the blocks after it reach it at
//     localhost:8000,
//   - skip=REASON is not run, for one of skipReasons.
func TestDocs_Pages(t *testing.T) {
	pages := guidePages(t)
	if len(pages) < 70 {
		t.Errorf("only %d pages", len(pages))
	}
	for _, page := range pages {
		text := testkit.ReadFile(t, filepath.Join("../../..", page))
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			p := &guide{t: t, home: folder, folder: folder}
			p.prepare(page)
			for _, m := range fence.FindAllStringSubmatch(text, -1) {
				p.block(m[1], strings.Fields(m[2]), m[3])
			}
		})
	}
}

// guide is a page that is run.
type guide struct {
	t       *testing.T
	home    string // the folder in which the page begins
	folder  string // the folder of the next block: a line "cd NAME" of a block changes it
	output  string // of the last command
	ran     bool   // the block before was a command
	address string // of the server of the page
}

// pageName returns the name of a page's folder in testdata/pages.
func pageName(page string) string {
	return strings.TrimSuffix(strings.TrimPrefix(page, "docs/"), ".md")
}

// prepare copies what the page takes for granted.
func (g *guide) prepare(page string) {
	g.t.Helper()
	files := filepath.Join("testdata", "pages", pageName(page))
	if _, err := os.Stat(files); err != nil {
		return
	}
	testkit.Must(g.t, os.CopyFS(g.folder, os.DirFS(files)))
	before := filepath.Join(g.folder, "before.sh")
	if _, err := os.Stat(before); err != nil {
		return
	}
	g.run(testkit.ReadFile(g.t, before), "")
	g.ran = false
	testkit.Must(g.t, os.Remove(before))
}

// block handles one block of the page.
func (g *guide) block(language string, info []string, text string) {
	g.t.Helper()
	ran := g.ran
	g.ran = false
	file, _ := option(info, "file")
	reason, skipped := option(info, "skip")
	switch {
	case file != "":
		path := filepath.Join(g.folder, filepath.FromSlash(file))
		testkit.Must(g.t, os.MkdirAll(filepath.Dir(path), 0o700))
		testkit.Must(g.t, os.WriteFile(path, []byte(text), 0o600))
	case skipped && !slices.Contains(skipReasons, reason):
		g.t.Errorf("skip=%s is none of %v", reason, skipReasons)
	case skipped:
	case language == "sh" && slices.Contains(info, "server"):
		line, _, _ := strings.Cut(text, "  #")
		g.serve(strings.TrimSpace(line))
	case language == "sh":
		want, _ := option(info, "status")
		g.run(text, want)
	case language == "text" && ran:
		g.expect(text)
	}
}

// option returns the value of NAME=VALUE of an info string.
func option(info []string, name string) (string, bool) {
	for _, word := range info {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// command returns a command of a shell in the folder of the page, without credentials.
func (g *guide) command(line string) *exec.Cmd {
	cmd := testkit.Command(g.t, "sh", "-e", "-c", line)
	cmd.Dir = g.folder
	cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=", "HOME="+g.home, "TMPDIR="+g.home, "NO_PROXY=*")
	return cmd
}

// run runs a block, which must end with the status, by default 0.
func (g *guide) run(text, status string) {
	g.t.Helper()
	if g.address != "" {
		text = strings.ReplaceAll(text, "localhost:8000", g.address)
	}
	text = strings.ReplaceAll(text, ".parquet", ".jsonl") // the pages are for the distribution, this program has no Parquet
	cmd := g.command(text)
	out, err := cmd.CombinedOutput()
	g.output, g.ran = string(out), true
	if got := cmd.ProcessState.String(); status == "" && err != nil || status != "" && got != "exit status "+status {
		g.t.Errorf("%s\n%s, %v\n%s", text, got, err, out)
	}
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "cd "); ok {
			g.folder = filepath.Join(g.folder, filepath.FromSlash(name))
		}
	}
}

// expect requires that a text is part of the output; … matches any text. Spaces at the ends
// of lines are not compared.
func (g *guide) expect(text string) {
	g.t.Helper()
	expr := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(text)), "…", "(?s:.*?)")
	lines := strings.Split(g.output, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	if !regexp.MustCompile(expr).MatchString(strings.Join(lines, "\n")) {
		g.t.Errorf("the output has no\n%s\nit is\n%s", text, g.output)
	}
}

// serve starts a server on a free port, until the end of the test.
func (g *guide) serve(line string) {
	g.t.Helper()
	cmd := g.command("exec env " + line + " --port 0")
	out, err := cmd.StderrPipe()
	testkit.Must(g.t, err)
	testkit.Must(g.t, cmd.Start())
	read := make(chan struct{})
	g.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-read
		_ = cmd.Wait()
	})
	address := make(chan string, 1)
	go func() {
		defer close(read)
		defer close(address)
		found := regexp.MustCompile(`http://([0-9a-z.:]+)`)
		var text string
		b := make([]byte, 1024)
		for {
			n, err := out.Read(b)
			text += string(b[:n])
			if m := found.FindStringSubmatch(text); m != nil && strings.Contains(text, "Ctrl-C ends it") {
				select {
				case address <- m[1]:
				default:
				}
			}
			if err != nil {
				return
			}
		}
	}()
	if g.address = <-address; g.address == "" {
		g.t.Fatalf("%s has ended", line)
	}
}

// TestDocs_PagesMarked: the languages of blocks are known, so that none is overlooked, and each
// folder of testdata/pages belongs to a page.
func TestDocs_PagesMarked(t *testing.T) {
	known := []string{"sh", "text", "yaml", "json", "jsonl", "csv", "python", "go", "js", "ts", "console", "dockerfile", "java", "lua", "toml", "sql", "dotenv", "markdown", "nginx", "caddy"}
	names := map[string]bool{}
	for _, page := range guidePages(t) {
		names[pageName(page)] = true
		for _, m := range fence.FindAllStringSubmatch(testkit.ReadFile(t, filepath.Join("../../..", page)), -1) {
			if !slices.Contains(known, m[1]) {
				t.Errorf("%s has a block %s", page, m[1])
			}
		}
	}
	folders, err := os.ReadDir("testdata/pages")
	testkit.Must(t, err)
	for _, folder := range folders {
		if !names[folder.Name()] {
			t.Errorf("testdata/pages/%s belongs to no page", folder.Name())
		}
	}
}
