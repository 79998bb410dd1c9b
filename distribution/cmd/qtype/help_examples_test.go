//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// exampleServers are the beginnings of examples that run until a signal, and the text that
// they print when they are ready.
var exampleServers = map[string]string{
	"qtype serve app.qtype.yaml":                   "Ctrl-C ends it",
	"qtype mcp --app app.qtype.yaml --http 127.0.": "http://",
	"qtype eval view report.json":                  "http://",
}

// exampleFolders are what the folder of an example needs besides testdata/examples, by the
// beginning of the example: commands that are run before it.
var exampleFolders = map[string]string{
	"qtype validate --model":                  "sed -i s/practice/assistant/g app.qtype.yaml",
	"qtype diff --model":                      "sed -i s/practice/assistant/g app.qtype.yaml",
	"qtype diff --git":                        "git init -q -b main . && git add app.qtype.yaml && git -c user.name=t -c user.email=t@example.com commit -qm one",
	"qtype eval view report.json":             "qtype eval app.qtype-eval.yaml -o report.json",
	"qtype eval view reports/":                "mkdir reports && qtype eval app.qtype-eval.yaml -o reports/one.json",
	"qtype eval app.qtype-eval.yaml --base":   "qtype eval app.qtype-eval.yaml -o report.json",
	"qtype serve app.qtype.yaml --host 0.0.0": "(umask 077; qtype serve --hash-key ci >>keys.txt)",
	"qtype test from":                         "qtype chat app.qtype.yaml -f support -i '{\"customer\": \"c-014\"}' --session me <transcript.jsonl",
	"qtype eval from":                         "qtype chat app.qtype.yaml -f support -i '{\"customer\": \"c-014\"}' --session me <transcript.jsonl",
	"qtype memory edit":                       "seq 8 | qtype chat app.qtype.yaml -f support -i '{\"customer\": \"c-014\"}' --session c-1",
	"qtype memory import app.qtype.yaml --in": "echo hi | qtype chat app.qtype.yaml -f support -i '{\"customer\": \"c-014\"}' --session me && qtype memory export app.qtype.yaml --full --all >all.jsonl && rm -r .qtype",
	"qtype memory list":                       "qtype chat app.qtype.yaml -f support -i '{\"customer\": \"c-014\"}' --session me <transcript.jsonl",
}

// TestHelpExamples runs every example of the help texts, which docs/commands.md has, in a folder with the files
// that it names, offline.
func TestHelpExamples(t *testing.T) {
	files, err := filepath.Abs("testdata/examples")
	testkit.Must(t, err)
	count := 0
	for _, block := range fence.FindAllStringSubmatch(testkit.ReadFile(t, "../../../docs/commands.md"), -1) {
		if block[1] != "sh" {
			continue
		}
		for line := range strings.Lines(block[3]) {
			line, _, _ := strings.Cut(strings.TrimSpace(line), "        #")
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			count++
			if isRunElsewhere(line) {
				continue
			}
			t.Run(line, func(t *testing.T) {
				t.Parallel()
				runExample(t, files, line)
			})
		}
	}
	if count < 40 {
		t.Errorf("only %d examples", count)
	}
}

// isRunElsewhere reports whether an example needs more than files: facts that a model has
// extracted (memory_user.txtar), a Temporal server (temporal_test.go), files that are not
// formatted, for which the command fails (fmt.txtar), a store with encryption
// (memory_reencrypt.txtar), or a server of the internet (models.txtar).
func isRunElsewhere(line string) bool {
	return strings.HasPrefix(line, "qtype memory facts") || strings.Contains(line, "temporal") || strings.HasPrefix(line, "qtype runs") || strings.HasPrefix(line, "qtype fmt --diff") ||
		strings.HasPrefix(line, "qtype memory reencrypt") || strings.HasPrefix(line, "qtype login") ||
		strings.HasPrefix(line, "qtype models update")
}

// runExample runs one line of a shell.
func runExample(t *testing.T, files, line string) {
	folder := t.TempDir()
	testkit.Must(t, os.CopyFS(folder, os.DirFS(files)))
	for prefix, before := range exampleFolders {
		if strings.HasPrefix(line, prefix) {
			cmd := exampleCommand(t, folder, before)
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", before, err, text)
			}
		}
	}
	for prefix, ready := range exampleServers {
		if strings.HasPrefix(line, prefix) {
			serveExample(t, folder, line, ready)
			return
		}
	}
	cmd := exampleCommand(t, folder, line)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// exampleCommand returns a command of a shell in a folder, without credentials.
func exampleCommand(t *testing.T, folder, line string) *exec.Cmd {
	cmd := testkit.Command(t, "sh", "-c", line)
	cmd.Dir = folder
	cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=", "HOME="+folder, "TMPDIR="+folder)
	return cmd
}

// serveExample runs a server on any free port until it is ready, and ends it by a signal.
func serveExample(t *testing.T, folder, line, ready string) {
	if strings.HasPrefix(line, "qtype mcp") {
		line += " --http 127.0.0.1:0"
	} else {
		line += " --port 0"
	}
	cmd := exampleCommand(t, folder, "exec "+line)
	out, err := cmd.StderrPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	timeout := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timeout.Stop()
	var text strings.Builder
	b := make([]byte, 1024)
	for !strings.Contains(text.String(), ready) {
		n, err := out.Read(b)
		text.Write(b[:n])
		if err != nil {
			t.Fatalf("it ended before %q: %s", ready, text.String())
		}
	}
	testkit.Must(t, cmd.Process.Signal(syscall.SIGTERM))
	go func() {
		for {
			if _, err := out.Read(b); err != nil {
				return
			}
		}
	}()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
