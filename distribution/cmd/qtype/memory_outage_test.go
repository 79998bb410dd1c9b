package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// keepsElsewhere is a chat with a memory on a server.
const keepsElsewhere = `id: shop
stores: [{id: chats, type: %s, url: "${CHATS}"}]
models: [{type: Model, id: echo, provider: mock}]
memories: [{id: talk}]
flows:
  - id: chat
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: echo, memory: talk, inputs: [message], outputs: [answer]}]
`

// TestChat_StoreOutage: while the server of a chat's memory hangs or is down, each turn
// fails with one clear line. When it is back, the chat continues and the memory has the
// turns that were answered.
func TestChat_StoreOutage(t *testing.T) {
	for kind, start := range map[string]func() (*servertest.Server, error){
		"redis":    func() (*servertest.Server, error) { return servertest.Redis("--appendfsync", "always") },
		"postgres": func() (*servertest.Server, error) { return servertest.Postgres() },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // it waits for timeouts
			server, err := start()
			servertest.Need(t, err)
			defer func() { testkit.Must(t, server.Close()) }()
			address := "redis://" + server.Address() + "?timeout=2s"
			if kind == "postgres" {
				address = server.URL() + "&timeout=2s"
			}
			c := startChat(t, fmt.Sprintf(keepsElsewhere, kind), address)
			c.expect(t, "offline")
			c.say(t, "one", `1 message .*"one"`)
			server.Freeze()
			c.say(t, "two", `^error: step reply: memory store `+kind+`://[^ ]*: no answer within 2s$`)
			server.Thaw()
			c.say(t, "three", `3 messages .*"three"`)
			testkit.Must(t, server.Kill())
			c.say(t, "four", `^error: step reply: memory store `+kind+`://[^ ]*: (cannot connect: .*|the connection was lost); tried for 2s$`)
			testkit.Must(t, server.Restart())
			c.say(t, "five", `5 messages .*"five"`)
			testkit.Must(t, c.in.Close())
			for c.lines.Scan() {
				t.Errorf("one line too much: %s", c.lines.Text())
			}
			if err := c.Wait(); err == nil {
				t.Error("a chat with lines that failed ended well")
			}
		})
	}
}

// dialog is a qtype chat that a test writes to and reads from.
type dialog struct {
	*exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner // of both its outputs
}

func startChat(t *testing.T, document, address string) *dialog {
	t.Helper()
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(document), 0o600))
	c := &dialog{Cmd: testkit.Command(t, "qtype", "chat", "app.qtype.yaml", "--session", "ada")}
	c.Dir, c.Env = dir, append(os.Environ(), "CHATS="+address, "NO_PROXY=*")
	var err error
	c.in, err = c.StdinPipe()
	testkit.Must(t, err)
	out, err := c.StdoutPipe()
	testkit.Must(t, err)
	c.Stderr = c.Stdout
	c.lines = bufio.NewScanner(out)
	testkit.Must(t, c.Start())
	return c
}

// say writes a line and returns the next one, the answer.
func (c *dialog) say(t *testing.T, text, want string) {
	t.Helper()
	_, err := fmt.Fprintln(c.in, text)
	testkit.Must(t, err)
	c.expect(t, want)
}

func (c *dialog) expect(t *testing.T, want string) {
	t.Helper()
	for c.lines.Scan() {
		line := c.lines.Text()
		if strings.TrimSpace(line) == "" {
			continue
		}
		if !regexp.MustCompile(want).MatchString(line) {
			t.Fatalf("got %q, want %s", line, want)
		}
		return
	}
	t.Fatalf("the chat ended, want %s", want)
}
