package recording_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/recording"
	"github.com/qtype-dev/qtype/internal/recording/calls"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// streaming is a chat model that streams its answer, or fails.
type streaming struct{ failure error }

func (streaming) Info() model.Info { return model.Info{ID: "m"} }

func (s streaming) Generate(context.Context, model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		if s.failure != nil {
			yield(model.Event{}, s.failure)
			return
		}
		_ = yield(model.Event{Reasoning: "hm"}, nil) && yield(model.Event{Text: "Hel"}, nil) && yield(model.Event{Text: "lo"}, nil) &&
			yield(model.Event{Response: &model.Response{Message: chat.Text(chat.Assistant, "Hello"), Finish: "stop", Usage: model.Usage{Input: 3, Output: 2, Cached: 1}}}, nil)
	}
}

// events returns what a model yields, without the ids of messages.
func events(m model.Chat, stream bool) (all []string) {
	for ev, err := range m.Generate(context.Background(), model.Request{Stream: stream, Messages: []chat.Message{chat.Text(chat.User, "Hi")}}) {
		switch {
		case err != nil:
			all = append(all, "error "+err.Error())
		case ev.Response != nil:
			all = append(all, "answer "+ev.Response.Message.Text()+" "+ev.Response.Finish)
		default:
			all = append(all, ev.Reasoning+"|"+ev.Text)
		}
	}
	return all
}

func TestSession_Chat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	declared := &spec.Model{ID: "m", Provider: "openai", ModelID: "gpt"}
	busy := &model.Error{Model: "m", Status: 429, Message: "busy", Temporary: true}
	for name, c := range map[string]struct {
		live   model.Chat
		stream bool
		want   []string
	}{
		"streamed":   {streaming{}, true, []string{"hm|", "|Hel", "|lo", "answer Hello stop"}},
		"not stream": {streaming{}, false, []string{"answer Hello stop"}},
		"failed":     {streaming{busy}, false, []string{"error model m: HTTP 429: busy"}},
	} {
		f, err := calls.Open(path)
		testkit.Must(t, err)
		s := recording.Start(f, name, recording.Record)
		events(s.Chat(declared, c.live), c.stream)
		s.Commit(true)
		testkit.Must(t, f.Save([]string{name}))
		f, err = calls.Open(path)
		testkit.Must(t, err)
		s = recording.Start(f, name, recording.Replay)
		if d := cmp.Diff(c.want, events(s.Chat(declared, nil), c.stream)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		// The recording was used: a second call has none.
		if got := events(s.Chat(declared, nil), c.stream); len(got) != 1 || got[0] != "error the request to model m is not recorded" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	f, _ := calls.Open(path)
	s := recording.Start(f, "canceled", recording.Record)
	if got := events(s.Chat(declared, streaming{context.Canceled}), false); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	s.Commit(true)
	testkit.Must(t, f.Save([]string{"canceled"}))
	if strings.Contains(testkit.ReadFile(t, path), "canceled") {
		t.Error("a canceled call is recorded")
	}
}

func TestSession_HTTP(t *testing.T) {
	const secret = "pass word/1234"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/token":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token": "tok-1", "expires_in": 3600}`)
		case "/image":
			_, _ = w.Write([]byte{0xff, 0xfe, 0})
		default:
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write(append([]byte("echo "+secret+" "), raw...))
		}
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "sub", "r.json")
	run := func(mode recording.Mode) []string {
		f, err := calls.Open(path)
		testkit.Must(t, err)
		s := recording.Start(f, "t", mode)
		s.Hide(secret, "k")
		c := s.Client()
		defer c.CloseIdleConnections()
		var all []string
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, call := range []struct{ kind, path, body string }{
			{"application/x-www-form-urlencoded", "/token", url.Values{"client_secret": {secret}, "k": {"k"}}.Encode()},
			{"multipart/form-data; boundary=b" + boundary(mode), "/form", "--b" + boundary(mode) + "--"},
			{"text/plain", "/image?key=k&q=" + url.QueryEscape(secret), "x"},
			{"", "/none", ""},
		} {
			wg.Go(func() {
				got := "error"
				if resp, err := c.Post(server.URL+call.path, call.kind, strings.NewReader(call.body)); err == nil {
					raw, _ := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					got = call.path + " " + resp.Status + " " + string(raw)
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, got)
			})
		}
		wg.Wait()
		s.Commit(true)
		testkit.Must(t, f.Save([]string{"t"}))
		return all
	}
	run(recording.Record)
	text := testkit.ReadFile(t, path)
	for _, unwanted := range []string{secret, url.QueryEscape(secret), "tok-1", "key=k"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("the file contains %q:\n%s", unwanted, text)
		}
	}
	replayed := strings.Join(run(recording.Replay), "\n")
	for _, want := range []string{"/image?key=k&q=pass+word%2F1234 200 OK \xff\xfe\x00", "418 I'm a teapot echo *** --bRecord--", `/token 200 OK {"access_token":"***","expires_in":3600}`} {
		if !strings.Contains(replayed, want) {
			t.Errorf("%q is missing in:\n%s", want, replayed)
		}
	}
	run(recording.Record)
	if again := testkit.ReadFile(t, path); again != text {
		t.Error(cmp.Diff(text, again))
	}
}

// boundary is a boundary that differs between the runs.
func boundary(m recording.Mode) string {
	if m == recording.Replay {
		return "Replay"
	}
	return "Record"
}

func TestSession_HTTP_Fails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	f, err := calls.Open(path)
	testkit.Must(t, err)
	s := recording.Start(f, "t", recording.Replay)
	_, err = s.Client().Get("http://nowhere.invalid/x")
	var missing *recording.MissingError
	if !errors.As(err, &missing) || missing.Diff != "+method: GET\n+url: http://nowhere.invalid/x" {
		t.Errorf("got %v", err)
	}
	if _, err := calls.Open(t.TempDir()); err == nil {
		t.Error("a folder is opened")
	}
}
