package lsp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// remoteKey is a server of files that knows their versions.
type remoteKey struct {
	*httptest.Server
	mu       sync.Mutex
	pages    map[string]string
	requests []string    // path and status, in their order
	came     chan string // the same, for who waits
	hold     chan bool   // where there is one, answers that are decided wait until it is closed
}

func serve(t *testing.T, pages map[string]string) *remoteKey {
	t.Helper()
	s := &remoteKey{pages: pages, came: make(chan string, 100)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		text, found := s.pages[r.URL.Path]
		status, tag := http.StatusOK, fmt.Sprintf("%q", fmt.Sprint(len(text), text))
		to, moved := strings.CutPrefix(text, "moved: ")
		switch {
		case !found:
			status = http.StatusNotFound
		case moved:
			status = http.StatusFound
			w.Header().Set("Location", to)
		case r.Header.Get("If-None-Match") == strings.ReplaceAll(tag, "\\n", ""):
			status = http.StatusNotModified
		}
		s.requests = append(s.requests, fmt.Sprint(r.URL.Path, " ", status))
		s.came <- s.requests[len(s.requests)-1]
		hold := s.hold
		s.mu.Unlock()
		if hold != nil {
			<-hold
		}
		w.Header().Set("ETag", strings.ReplaceAll(tag, "\\n", ""))
		w.WriteHeader(status)
		if status == http.StatusOK {
			_, _ = io.WriteString(w, text)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *remoteKey) set(path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = text
}

// next waits for a request.
func (s *remoteKey) next(t *testing.T) string {
	t.Helper()
	select {
	case r := <-s.came:
		return r
	case <-time.After(time.Minute):
		t.Fatal("the server was not asked")
		return ""
	}
}

// asked are all requests so far.
func (s *remoteKey) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.requests, ", ")
}

// startRemote opens an editor whose settings want includes of other machines.
func startRemote(t *testing.T, capabilities map[string]any) *editor {
	t.Helper()
	e := connect(t)
	e.call("initialize", map[string]any{"rootUri": "file://" + e.dir, "capabilities": capabilities,
		"initializationOptions": map[string]any{"remoteIncludes": true}}, nil)
	e.notify("initialized", map[string]any{})
	return e
}

// until waits for diagnostics of a document, of whatever version, that hold.
func (e *editor) until(name, what string, holds func([]diagnostic) bool) []diagnostic {
	e.t.Helper()
	deadline := time.After(time.Minute)
	var last []diagnostic
	for {
		select {
		case p := <-e.published:
			if last = p.Diagnostics; p.URI == e.uri(name) && holds(last) {
				return last
			}
		case <-deadline:
			e.t.Fatalf("%s never came; the last were %v", what, last)
		}
	}
}

func says(part string) func([]diagnostic) bool {
	return func(list []diagnostic) bool {
		for _, d := range list {
			if strings.Contains(d.Message, part) {
				return true
			}
		}
		return false
	}
}

const farApp = `id: shop
models: !include %s/models.yaml
flows:
  - id: talk
    variables:
      - {id: question, type: text}
      - {id: answer, type: text}
    inputs: [question]
    outputs: [answer]
    steps:
      - id: ask
        type: LLMInference
        model: fast
        inputs: [question]
        outputs: [answer]
`

const farModels = "- type: Model\n  id: fast\n  provider: mock\n"

// TestRemoteIncludes: what lies on another machine is read beside the typing, once,
// and asked for again after a save; what is wrong in it is told at the include.
func TestRemoteIncludes(t *testing.T) {
	s := serve(t, map[string]string{"/models.yaml": farModels + "  modle_id: x\n"})
	e := startRemote(t, map[string]any{})
	e.open("app.qtype.yaml", fmt.Sprintf(farApp, s.URL))
	first := e.diagnostics("app.qtype.yaml")
	if len(first) != 1 || first[0].Severity != 3 || !strings.Contains(first[0].Message, "being fetched") {
		t.Errorf("before the answer there is %v", first)
	}
	found := e.until("app.qtype.yaml", "a fault of the remote file", says("modle_id"))
	if len(found) != 1 || found[0].Severity != 1 || found[0].Range.Start.Line != 1 || !strings.HasPrefix(found[0].Message, s.URL+"/models.yaml:4:3: ") {
		t.Errorf("found %v", found)
	}
	for range 20 {
		e.change("app.qtype.yaml", map[string]any{"range": textRange{}, "text": "# typed\n"})
	}
	e.diagnostics("app.qtype.yaml")
	if got := s.asked(); got != "/models.yaml 200" {
		t.Errorf("typing asked the server: %s", got)
	}
	e.notify("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": e.uri("app.qtype.yaml")}})
	if first, second := s.next(t), s.next(t); first != "/models.yaml 200" || second != "/models.yaml 304" {
		t.Errorf("called were %s and %s", first, second)
	}
	s.set("/models.yaml", farModels)
	e.notify("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": e.uri("app.qtype.yaml")}})
	e.until("app.qtype.yaml", "no finding", func(list []diagnostic) bool { return len(list) == 0 })
}

// TestASaveWhileAServerAnswersIsNotLost: the answer that is under way may be older
// than what was saved, so the server is asked again.
func TestASaveWhileAServerAnswersIsNotLost(t *testing.T) {
	s := serve(t, map[string]string{"/models.yaml": farModels + "  modle_id: x\n"})
	e := startRemote(t, map[string]any{})
	e.open("app.qtype.yaml", fmt.Sprintf(farApp, s.URL))
	e.until("app.qtype.yaml", "a fault of the remote file", says("modle_id"))
	s.next(t)
	hold := make(chan bool)
	s.mu.Lock()
	s.hold = hold
	s.mu.Unlock()
	save := func() {
		e.notify("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": e.uri("app.qtype.yaml")}})
	}
	save()
	if got := s.next(t); got != "/models.yaml 304" {
		t.Errorf("the first save asked %s", got)
	}
	s.set("/models.yaml", farModels)
	save()
	e.call("textDocument/hover", e.at("app.qtype.yaml", "model: fast", 0, 9), nil) // the server has read the save
	close(hold)
	e.until("app.qtype.yaml", "no finding", func(list []diagnostic) bool { return len(list) == 0 })
}

// TestRemoteNames: ids of a remote file are completed and found; renaming them is refused.
func TestRemoteNames(t *testing.T) {
	s := serve(t, map[string]string{"/models.yaml": farModels})
	e := startRemote(t, map[string]any{})
	e.open("app.qtype.yaml", fmt.Sprintf(farApp, s.URL))
	e.until("app.qtype.yaml", "no finding", func(list []diagnostic) bool { return len(list) == 0 })
	at := func() map[string]any { return e.at("app.qtype.yaml", "model: fast", 0, 9) }
	var at2 []location
	e.call("textDocument/definition", at(), &at2)
	if len(at2) != 1 || at2[0].URI != e.uri("app.qtype.yaml") || at2[0].Range.Start.Line != 1 {
		t.Errorf("the declaration is at %v", at2)
	}
	if err := e.ask("textDocument/rename", and(at(), "newName", "quick"), nil); err == nil || !strings.Contains(err.Error(), "cannot be changed from here") {
		t.Errorf("renaming said %v", err)
	}
	var list struct{ Items []item }
	e.call("textDocument/completion", e.at("app.qtype.yaml", "model: fast", 0, 8), &list)
	if len(list.Items) != 1 || list.Items[0].Label != "fast" {
		t.Errorf("completed %v", list.Items)
	}
}

// TestRemoteBorders: a remote file includes only what lies below it, also where a
// server sends elsewhere, and a file that does not exist is a fault.
func TestRemoteBorders(t *testing.T) {
	other := serve(t, map[string]string{"/models.yaml": farModels})
	s := serve(t, map[string]string{
		"/a/elsewhere.yaml": "!include " + other.URL + "/models.yaml\n",
		"/a/moved.yaml":     "!include to.yaml\n",
		"/a/to.yaml":        "moved: " + other.URL + "/models.yaml",
		"/a/local.yaml":     "!include file:///etc/passwd\n",
	})
	for page, want := range map[string]string{
		"elsewhere.yaml": "lies outside of " + s.URL + "/a/",
		"moved.yaml":     "which is outside of " + s.URL + "/a/",
		"local.yaml":     "lies outside of " + s.URL + "/a/",
		"none.yaml":      "does not exist",
	} {
		t.Run(page, func(t *testing.T) {
			e := startRemote(t, map[string]any{})
			e.open("app.qtype.yaml", "id: x\nmodels: !include "+s.URL+"/a/"+page+"\n")
			found := e.until("app.qtype.yaml", want, says(want))
			if found[0].Severity != 1 || found[0].Range.Start.Line != 1 {
				t.Errorf("found %v", found)
			}
		})
	}
	if other.asked() != "" {
		t.Errorf("the other server was asked: %s", other.asked())
	}
}

// TestRemoteTyping: addresses that somebody passes while typing are not called.
func TestRemoteTyping(t *testing.T) {
	s := serve(t, map[string]string{"/models.yaml": farModels})
	e := startRemote(t, map[string]any{})
	e.open("app.qtype.yaml", "id: x\n")
	e.diagnostics("app.qtype.yaml")
	for i := range len("/models.yaml") {
		e.replace("app.qtype.yaml", "id: x\nmodels: !include "+s.URL+"/models.yaml"[:i+1]+"\n")
		e.diagnostics("app.qtype.yaml")
	}
	if got := s.next(t); got != "/models.yaml 200" {
		t.Errorf("called was %s", got)
	}
}

// TestRemoteSettings: the setting can be changed, and a wrong one is told.
func TestRemoteSettings(t *testing.T) {
	s := serve(t, map[string]string{"/models.yaml": farModels})
	e := start(t, nil)
	e.open("app.qtype.yaml", fmt.Sprintf(farApp, s.URL))
	e.until("app.qtype.yaml", "the hint", says("not read in an editor"))
	configure := func(settings any) { e.notify("workspace/didChangeConfiguration", map[string]any{"settings": settings}) }
	configure(map[string]any{"qtype": map[string]any{"remoteIncludes": true}})
	e.until("app.qtype.yaml", "no finding", func(list []diagnostic) bool { return len(list) == 0 })
	configure([]any{}) // what some editors say for no settings
	configure(map[string]any{"qtype": map[string]any{"remoteIncludes": false}})
	e.until("app.qtype.yaml", "the hint", says("not read in an editor"))
	configure(map[string]any{"qtype": map[string]any{"remoteIncludes": "yes"}})
	for method := range e.asked {
		if method == "window/showMessageRequest" {
			break
		}
	}
	if s.asked() != "/models.yaml 200" {
		t.Errorf("called were %s", s.asked())
	}
	other := connect(t)
	err := other.ask("initialize", map[string]any{"capabilities": map[string]any{}, "initializationOptions": map[string]any{"remoteIncludes": "yes"}}, nil)
	if err == nil || !strings.Contains(err.Error(), `remoteIncludes must be true or false, not "yes"`) {
		t.Errorf("a wrong setting said %v", err)
	}
}

// TestRemoteForEditorsThatPull: they are asked to pull once a file has come.
func TestRemoteForEditorsThatPull(t *testing.T) {
	s := serve(t, map[string]string{"/models.yaml": farModels + "  modle_id: x\n"})
	e := startRemote(t, map[string]any{"textDocument": map[string]any{"diagnostic": map[string]any{}},
		"workspace": map[string]any{"diagnostics": map[string]any{"refreshSupport": true}}})
	e.open("app.qtype.yaml", fmt.Sprintf(farApp, s.URL))
	pull := func() []diagnostic {
		var report struct{ Items []diagnostic }
		e.call("textDocument/diagnostic", map[string]any{"textDocument": map[string]any{"uri": e.uri("app.qtype.yaml")}}, &report)
		return report.Items
	}
	if found := pull(); !says("being fetched")(found) {
		t.Errorf("at first there is %v", found)
	}
	for method := range e.asked {
		if method == "workspace/diagnostic/refresh" {
			break
		}
	}
	if found := pull(); len(found) != 1 || !says("modle_id")(found) {
		t.Errorf("then there is %v", found)
	}
}
