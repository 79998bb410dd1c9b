package command

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/command/commandtest"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// traced is an application that sends traces to ENDPOINT.
var traced = strings.Replace(commandtest.Inbox, "- id: answer\n", "- id: answer\n    interface: {type: Conversational}\n", 1) + `telemetry: {id: traces, provider: OTLP, endpoint: "ENDPOINT"}
`

// names returns the names of the spans that a server receives.
type names struct {
	mu    sync.Mutex
	spans []string
}

func (n *names) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	data := &tracepb.TracesData{}
	if err != nil || proto.Unmarshal(body, data) != nil {
		n.spans = append(n.spans, "not a trace")
	}
	for _, resource := range data.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				n.spans = append(n.spans, s.Name)
			}
		}
	}
}

// TestTraces_RunAndChat: run and chat send all spans before they end.
func TestTraces_RunAndChat(t *testing.T) {
	for command, want := range map[string]int{"run": 1, "chat": 2} {
		t.Run(command, func(t *testing.T) {
			received := &names{}
			server := httptest.NewServer(received)
			t.Cleanup(server.Close)
			inFolder(t, map[string]string{"traced.qtype.yaml": strings.Replace(traced, "ENDPOINT", server.URL, 1)})
			var out, errs bytes.Buffer
			s := &cli.Streams{Streams: terminal.Streams{In: strings.NewReader("one\ntwo\n"), Out: &out, Err: &errs}}
			args := []string{command, "traced.qtype.yaml", "--ephemeral"}
			if command == "run" {
				args = append(args, "-i", "one")
			}
			if code := Execute(t.Context(), observed(), s, args); code != cli.ExitDone || strings.Contains(errs.String(), "telemetry") {
				t.Errorf("status %d: %s", code, errs.String())
			}
			count := map[string]int{}
			for _, name := range received.spans {
				count[name]++
			}
			for _, name := range []string{"flow.answer", "step.draft.process_message", "memory.chat_memory"} {
				if count[name] != want {
					t.Errorf("%d spans %s, want %d in %q", count[name], name, want, received.spans)
				}
			}
		})
	}
}

// TestTraces_Unavailable: a sink that cannot be used is one warning.
func TestTraces_Unavailable(t *testing.T) {
	closed := "http://" + servertest.Refused(t)
	for declared, want := range map[string]string{
		strings.Replace(traced, "ENDPOINT", closed, 1):                                         "warning: telemetry: traces cannot be sent: ",
		strings.Replace(strings.Replace(traced, "ENDPOINT", closed, 1), "OTLP", "Langfuse", 1): "warning: telemetry traces: provider Langfuse needs ",
	} {
		inFolder(t, map[string]string{"traced.qtype.yaml": declared})
		var out, errs bytes.Buffer
		s := &cli.Streams{Streams: terminal.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}}
		code := Execute(t.Context(), observed(), s, []string{"run", "traced.qtype.yaml", "-i", "one", "--ephemeral"})
		if code != cli.ExitDone || strings.Count(errs.String(), "warning: telemetry") != 1 || !strings.Contains(errs.String(), want) {
			t.Errorf("status %d: %s", code, errs.String())
		}
	}
}
