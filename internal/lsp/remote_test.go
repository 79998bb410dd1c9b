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

// fileServer serves files with ETags and records requests.
type fileServer struct {
	*httptest.Server
	mu       sync.Mutex
	pages    map[string]string
	requests []string    // path and status, in order
	came     chan string // the same, for waiting
	hold     chan bool   // if not nil, responses wait until it is closed
}

func startFileServer(t *testing.T, pages map[string]string) *fileServer {
	t.Helper()
	s := &fileServer{pages: pages, came: make(chan string, 100)}
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

func (s *fileServer) set(path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = text
}

// next waits for a request.
func (s *fileServer) next(t *testing.T) string {
	t.Helper()
	select {
	case r := <-s.came:
		return r
	case <-time.After(time.Minute):
		t.Fatal("the server received no request")
		return ""
	}
}

// allRequests returns the requests so far.
func (s *fileServer) allRequests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.requests, ", ")
}

// startRemote starts an editor with remote includes enabled.
func startRemote(t *testing.T, capabilities map[string]any) *editor {
	t.Helper()
	e := connect(t)
	e.call("initialize", map[string]any{"rootUri": "file://" + e.dir, "capabilities": capabilities,
		"initializationOptions": map[string]any{"remoteIncludes": true}}, nil)
	e.notify("initialized", map[string]any{})
	return e
}

// waitForDiagnostics waits for diagnostics of any version of a document that match.
func (e *editor) waitForDiagnostics(name, what string, holds func([]diagnostic) bool) []diagnostic {
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

func hasMessage(part string) func([]diagnostic) bool {
	return func(list []diagnostic) bool {
		for _, d := range list {
			if strings.Contains(d.Message, part) {
				return true
			}
		}
		return false
	}
}

const remoteApp = `id: shop
models: !include %s/models.yaml
flows:
  - id: talk
    variables:
      - {id: question, type: text}
      - {id: answer, type: text}
    inputs: [question]
    outputs: [answer]
    steps:
      - id: respond
        type: LLMInference
        model: fast
        inputs: [question]
        outputs: [answer]
`

const remoteModels = "- type: Model\n  id: fast\n  provider: mock\n"

// TestRemote_Includes checks that a remote file is fetched once in the background
// and again after a save, and that its errors are reported at the include.
func TestRemote_Includes(t *testing.T) {
	t.Parallel() // it waits for the server to fetch
	s := startFileServer(t, map[string]string{"/models.yaml": remoteModels + "  modle_id: x\n"})
	e := startRemote(t, map[string]any{})
	e.open("app.qtype.yaml", fmt.Sprintf(remoteApp, s.URL))
	first := e.diagnostics("app.qtype.yaml")
	if len(first) != 1 || first[0].Severity != 3 || !strings.Contains(first[0].Message, "being fetched") {
		t.Errorf("before the response: %v", first)
	}
	found := e.waitForDiagnostics("app.qtype.yaml", "an error of the remote file", hasMessage("modle_id"))
	if len(found) != 1 || found[0].Severity != 1 || found[0].Range.Start.Line != 1 || !strings.HasPrefix(found[0].Message, s.URL+"/models.yaml:4:3: ") {
		t.Errorf("found %v", found)
	}
	for range 20 {
		e.change("app.qtype.yaml", map[string]any{"range": textRange{}, "text": "# typed\n"})
	}
	e.diagnostics("app.qtype.yaml")
	if got := s.allRequests(); got != "/models.yaml 200" {
		t.Errorf("requests while typing: %s", got)
	}
	e.notify("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": e.uri("app.qtype.yaml")}})
	if first, second := s.next(t), s.next(t); first != "/models.yaml 200" || second != "/models.yaml 304" {
		t.Errorf("requests: %s and %s", first, second)
	}
	s.set("/models.yaml", remoteModels)
	e.notify("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": e.uri("app.qtype.yaml")}})
	e.waitForDiagnostics("app.qtype.yaml", "no diagnostics", func(list []diagnostic) bool { return len(list) == 0 })
}

// TestRemote_SaveDuringFetch checks that a save during a fetch causes another one:
// the response may be older than the save.
func TestRemote_SaveDuringFetch(t *testing.T) {
	t.Parallel() // it waits for the server to fetch
	s := startFileServer(t, map[string]string{"/models.yaml": remoteModels + "  modle_id: x\n"})
	e := startRemote(t, map[string]any{})
	e.open("app.qtype.yaml", fmt.Sprintf(remoteApp, s.URL))
	e.waitForDiagnostics("app.qtype.yaml", "an error of the remote file", hasMessage("modle_id"))
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
		t.Errorf("request after the first save: %s", got)
	}
	s.set("/models.yaml", remoteModels)
	save()
	e.call("textDocument/hover", e.positionOf("app.qtype.yaml", "model: fast", 0, 9), nil) // the server has handled the save
	close(hold)
	e.waitForDiagnostics("app.qtype.yaml", "no diagnostics", func(list []diagnostic) bool { return len(list) == 0 })
}

// TestRemote_Names checks that ids of a remote file are completed and found, and
// cannot be renamed.
func TestRemote_Names(t *testing.T) {
	t.Parallel() // it waits for the server to fetch
	s := startFileServer(t, map[string]string{"/models.yaml": remoteModels})
	e := startRemote(t, map[string]any{})
	e.open("app.qtype.yaml", fmt.Sprintf(remoteApp, s.URL))
	e.waitForDiagnostics("app.qtype.yaml", "no diagnostics", func(list []diagnostic) bool { return len(list) == 0 })
	at := func() map[string]any { return e.positionOf("app.qtype.yaml", "model: fast", 0, 9) }
	var found []location
	e.call("textDocument/definition", at(), &found)
	if len(found) != 1 || found[0].URI != e.uri("app.qtype.yaml") || found[0].Range.Start.Line != 1 {
		t.Errorf("the declaration is at %v", found)
	}
	if err := e.tryCall("textDocument/rename", withParam(at(), "newName", "quick"), nil); err == nil || !strings.Contains(err.Error(), "cannot be edited here") {
		t.Errorf("renaming: %v", err)
	}
	var list struct{ Items []completionItem }
	e.call("textDocument/completion", e.positionOf("app.qtype.yaml", "model: fast", 0, 8), &list)
	if len(list.Items) != 1 || list.Items[0].Label != "fast" {
		t.Errorf("completed %v", list.Items)
	}
}

// TestRemote_Boundaries checks that a remote file may include only files below its
// own base, also after redirects, and that a missing file is an error.
func TestRemote_Boundaries(t *testing.T) {
	t.Parallel() // it waits for the server to fetch
	other := startFileServer(t, map[string]string{"/models.yaml": remoteModels})
	s := startFileServer(t, map[string]string{
		"/a/elsewhere.yaml": "!include " + other.URL + "/models.yaml\n",
		"/a/moved.yaml":     "!include to.yaml\n",
		"/a/to.yaml":        "moved: " + other.URL + "/models.yaml",
		"/a/local.yaml":     "!include file:///etc/passwd\n",
	})
	for page, want := range map[string]string{
		"elsewhere.yaml": "is not below " + s.URL + "/a/",
		"moved.yaml":     "which is outside of " + s.URL + "/a/",
		"local.yaml":     "is not below " + s.URL + "/a/",
		"none.yaml":      "does not exist",
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			e := startRemote(t, map[string]any{})
			e.open("app.qtype.yaml", "id: x\nmodels: !include "+s.URL+"/a/"+page+"\n")
			found := e.waitForDiagnostics("app.qtype.yaml", want, hasMessage(want))
			if found[0].Severity != 1 || found[0].Range.Start.Line != 1 {
				t.Errorf("found %v", found)
			}
		})
	}
	t.Cleanup(func() {
		if other.allRequests() != "" {
			t.Errorf("the other server received: %s", other.allRequests())
		}
	})
}

// TestRemote_Debounce checks that addresses are not fetched while they are typed.
func TestRemote_Debounce(t *testing.T) {
	t.Parallel() // it waits for the server to fetch
	s := startFileServer(t, map[string]string{"/models.yaml": remoteModels})
	e := startRemote(t, map[string]any{})
	e.open("app.qtype.yaml", "id: x\n")
	e.diagnostics("app.qtype.yaml")
	for i := range len("/models.yaml") {
		e.replace("app.qtype.yaml", "id: x\nmodels: !include "+s.URL+"/models.yaml"[:i+1]+"\n")
		e.diagnostics("app.qtype.yaml")
	}
	if got := s.next(t); got != "/models.yaml 200" {
		t.Errorf("request: %s", got)
	}
}

// TestRemote_Settings checks that the setting can be changed, and that an invalid
// one is reported.
func TestRemote_Settings(t *testing.T) {
	t.Parallel() // it waits for the server to fetch
	s := startFileServer(t, map[string]string{"/models.yaml": remoteModels})
	e := start(t, nil)
	e.open("app.qtype.yaml", fmt.Sprintf(remoteApp, s.URL))
	e.waitForDiagnostics("app.qtype.yaml", "the information", hasMessage("remote includes are disabled"))
	configure := func(settings any) { e.notify("workspace/didChangeConfiguration", map[string]any{"settings": settings}) }
	configure(map[string]any{"qtype": map[string]any{"remoteIncludes": true}})
	e.waitForDiagnostics("app.qtype.yaml", "no diagnostics", func(list []diagnostic) bool { return len(list) == 0 })
	configure([]any{}) // some editors send [] for no settings
	configure(map[string]any{"qtype": map[string]any{"remoteIncludes": false}})
	e.waitForDiagnostics("app.qtype.yaml", "the information", hasMessage("remote includes are disabled"))
	configure(map[string]any{"qtype": map[string]any{"remoteIncludes": "yes"}})
	for method := range e.serverRequests {
		if method == "window/showMessageRequest" {
			break
		}
	}
	if s.allRequests() != "/models.yaml 200" {
		t.Errorf("requests: %s", s.allRequests())
	}
	other := connect(t)
	err := other.tryCall("initialize", map[string]any{"capabilities": map[string]any{}, "initializationOptions": map[string]any{"remoteIncludes": "yes"}}, nil)
	if err == nil || !strings.Contains(err.Error(), `remoteIncludes must be true or false, not "yes"`) {
		t.Errorf("invalid setting: %v", err)
	}
}

// TestRemote_PullDiagnostics checks that editors are asked to pull after a fetch.
func TestRemote_PullDiagnostics(t *testing.T) {
	t.Parallel() // it waits for the server to fetch
	s := startFileServer(t, map[string]string{"/models.yaml": remoteModels + "  modle_id: x\n"})
	e := startRemote(t, map[string]any{"textDocument": map[string]any{"diagnostic": map[string]any{}},
		"workspace": map[string]any{"diagnostics": map[string]any{"refreshSupport": true}}})
	e.open("app.qtype.yaml", fmt.Sprintf(remoteApp, s.URL))
	pull := func() []diagnostic {
		var report struct{ Items []diagnostic }
		e.call("textDocument/diagnostic", map[string]any{"textDocument": map[string]any{"uri": e.uri("app.qtype.yaml")}}, &report)
		return report.Items
	}
	if found := pull(); !hasMessage("being fetched")(found) {
		t.Errorf("at first: %v", found)
	}
	for method := range e.serverRequests {
		if method == "workspace/diagnostic/refresh" {
			break
		}
	}
	if found := pull(); len(found) != 1 || !hasMessage("modle_id")(found) {
		t.Errorf("then: %v", found)
	}
}
