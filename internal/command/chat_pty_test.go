//go:build linux

package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// console is a pseudo-terminal that a command runs on.
type console struct {
	t      *testing.T
	master *os.File
	text   string // what was written on it and not yet waited for
	read   chan string
}

// newConsole starts the command with a new terminal as all of its streams.
func newConsole(t *testing.T, cmd *exec.Cmd) *console {
	t.Helper()
	return newSizedConsole(t, cmd, unix.Winsize{})
}

// newSizedConsole is newConsole with a terminal of some size.
func newSizedConsole(t *testing.T, cmd *exec.Cmd, size unix.Winsize) *console {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals: %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals: %v", err)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &size); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	c := &console{t: t, master: master, read: make(chan string, 100)}
	go func() {
		defer close(c.read)
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			c.read <- string(b[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = master.Close() })
	return c
}

// see waits until a text is written, and drops everything up to its end.
func (c *console) see(text string) {
	c.t.Helper()
	late := time.After(2 * time.Minute)
	for !strings.Contains(c.text, text) {
		select {
		case more, ok := <-c.read:
			if !ok {
				c.t.Fatalf("the terminal was closed before %q came; there was %q", text, c.text)
			}
			c.text += more
		case <-late:
			c.t.Fatalf("%q did not come; there was %q", text, c.text)
		}
	}
	_, c.text, _ = strings.Cut(c.text, text)
}

func (c *console) say(keys string) {
	c.t.Helper()
	if _, err := io.WriteString(c.master, keys); err != nil {
		c.t.Fatal(err)
	}
}

// TestChat_OnTerminal types lines on a terminal that cannot be edited, because its size is not known. It types into the real command: an answer is streamed, Ctrl-C stops
// one and the memory records it, Ctrl-D quits.
func TestChat_OnTerminal(t *testing.T) {
	next := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		piece := func(text, finish string) {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":%s}]}\n\n", text, finish)
			w.(http.Flusher).Flush()
		}
		piece("Once upon", "null")
		if strings.Contains(string(body), "hang") && !strings.Contains(string(body), "again") {
			<-r.Context().Done()
			return
		}
		<-next
		piece(" a time", `"stop"`)
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer server.Close()
	folder := t.TempDir()
	document := `id: tales
memories: [{id: notes}]
models: [{type: Model, id: teller, provider: openai, model_id: gpt-6-sol, base_url: "` + server.URL + `"}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: narrate, model: teller, memory: notes, inputs: [message], outputs: [answer]}]
`
	if err := os.WriteFile(filepath.Join(folder, "app.qtype.yaml"), []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	link := filepath.Join(t.TempDir(), "qtype") // the test program is qtype under that name
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, link, "chat", "app.qtype.yaml", "--session", "me")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=k", "NO_PROXY=*", "TERM=xterm")
	c := newConsole(t, cmd)
	c.see("you> ")
	c.say("A tale please\n")
	c.see("Once upon") // before the rest was sent
	next <- struct{}{}
	c.see(" a time")
	c.see("you> ")
	c.say("\x03")
	c.see("Ctrl-D or /quit ends the conversation")
	c.see("you> ")
	c.say("Now hang\n")
	c.see("Once upon")
	c.say("\x03")
	c.see("(stopped)")
	c.see("you> ")
	c.say("/history\n")
	c.see("[stopped] Once upon")
	c.see("you> ")
	c.say("And again\n")
	c.see("Once upon")
	next <- struct{}{}
	c.see(" a time")
	c.see("you> ")
	c.say("\x04")
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	explain := exec.CommandContext(ctx, link, "memory", "explain", "app.qtype.yaml", "--session", "me", "--turn", "3")
	explain.Dir, explain.Env = folder, cmd.Env
	if text, err := explain.CombinedOutput(); err != nil || !strings.Contains(string(text), "turn 3 sent 5 messages") {
		t.Errorf("the request after the stopped turn has not what was said: %v\n%s", err, text)
	}
}
