package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// End is what a program or an address gets at the end of a run, in JSON.
type End struct {
	App     string  `json:"app"`              // the application's id
	Flow    string  `json:"flow"`             // the flow's id
	Status  string  `json:"status"`           // done, rows_failed, failed or interrupted
	Error   string  `json:"error,omitempty"`  // why the run has failed
	Output  string  `json:"output,omitempty"` // the file with the results
	Rows    int64   `json:"rows"`             // results
	Failed  int64   `json:"failed"`           // those that failed
	Cost    float64 `json:"cost"`             // by the prices of the models
	Saved   float64 `json:"saved"`            // by batches
	Seconds float64 `json:"seconds"`          // of this process
}

// onEndTime is how long a program, or a server, may take.
const onEndTime = time.Minute

// isAddress reports whether the end of a run is sent to an address, and not to a program.
func isAddress(target string) bool {
	return strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://")
}

// checkOnEnd rejects what cannot get the end of a run.
func (cfg *Config) checkOnEnd() error {
	words := strings.Fields(cfg.OnEnd)
	switch {
	case len(words) == 0:
		return nil
	case isAddress(cfg.OnEnd):
		if to, err := url.Parse(cfg.OnEnd); err != nil || to.Host == "" {
			return terminal.Usagef("--on-end: expected the address of a server, such as https://example.com/hook")
		}
		return nil
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return terminal.Usagef("--on-end: %v", err)
	}
	return nil
}

// notify sends the end of the run. If that fails, a warning is written.
func (j *job) notify(ctx context.Context, sum *summary, failed error) {
	if j.OnEnd == "" || errors.Is(failed, ErrDetached) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), onEndTime)
	defer cancel()
	text, err := json.Marshal(j.end(sum, failed))
	switch {
	case err != nil:
	case isAddress(j.OnEnd):
		err = post(ctx, j.OnEnd, text)
	default:
		words := strings.Fields(j.OnEnd)
		cmd := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the user's command line names the program
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(text), j.Streams.Err, j.Streams.Err, time.Second
		err = cmd.Run()
	}
	if err != nil {
		fmt.Fprintf(j.Streams.Err, "warning: --on-end: %s\n", terminal.Clean(err.Error()))
	}
}

// end returns how the run has ended.
func (j *job) end(sum *summary, failed error) End {
	end := End{App: j.app.Spec().ID, Flow: j.flow.ID, Status: "done", Rows: sum.done + sum.failed, Failed: sum.failed, Seconds: time.Since(sum.begin).Seconds()}
	if sum.written {
		end.Output = j.Output
	}
	sum.mu.Lock()
	end.Cost, end.Saved = sum.cost, sum.saved
	sum.mu.Unlock()
	switch {
	case errors.Is(failed, ErrRowsFailed):
		end.Status = "rows_failed"
	case errors.Is(failed, errInterrupted):
		end.Status = "interrupted"
	case failed != nil:
		end.Status, end.Error = "failed", failed.Error()
	}
	return end
}

// post sends an object to an address. An error does not have the address, which may be secret.
func post(ctx context.Context, address string, object []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(object))
	if err != nil {
		return errors.New("the address is not valid")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", httpx.UserAgent())
	client := &http.Client{Transport: httpx.Transport(1), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot reach %s: %s", req.URL.Host, httpx.Reason(err))
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 1<<16) // so that the server can end its answer
	if err := resp.Body.Close(); err != nil || resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: HTTP %d", req.URL.Host, resp.StatusCode)
	}
	return nil
}
