package mcpserver

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/value"
)

// ApplicationOptions configure the server of an application.
type ApplicationOptions struct {
	Version string // of the program

	// HostChecked is true if something else checks the header Host of requests. Otherwise those that
	// arrive on loopback must name it, against DNS rebinding.
	HostChecked bool

	// Allowed reports whether the caller of a request, access.PrincipalOf(ctx), may call
	// a flow. Flows that it may not call are not listed either. nil: access.Allowed.
	Allowed func(ctx context.Context, flow *spec.Flow) bool

	// AppHandlers leaves approvals and client tools to the functions of the App, which may
	// call Approve and HandleClientTool. Otherwise the user of the client answers.
	AppHandlers bool

	// Run replaces App.Run, for a server that manages runs; nil: App.Run.
	Run func(ctx context.Context, flowID string, rows iter.Seq[runtime.Input], opts ...runtime.RunOption) iter.Seq2[*runtime.Result, error]

	// ErrorText returns what the caller reads about an error of a run; nil: runtime.PublicText.
	ErrorText func(ctx context.Context, err error) string

	// AnswerTimeout is how long a run of a client of protocol 2026-07-28 waits for the
	// answer to a question; 0: 10 minutes. Clients of earlier versions have no limit.
	AnswerTimeout time.Duration
}

// application serves an App.
type application struct {
	app     *runtime.App
	opts    ApplicationOptions
	flows   map[string]*flowTool // by the names of tools
	prompts map[string]*flowPrompt
	parked  parked
}

// Application returns the server of an application. Every flow is a tool, and a prompt
// if it begins with a PromptTemplate; memories are resources. The caller closes the
// server before the App.
func Application(app *runtime.App, opts ApplicationOptions) (*Server, error) {
	if opts.ErrorText == nil {
		opts.ErrorText = func(_ context.Context, err error) string {
			text, _ := runtime.PublicText(err)
			return text
		}
	}
	if opts.Run == nil {
		opts.Run = app.Run
	}
	if opts.Allowed == nil {
		opts.Allowed = func(ctx context.Context, f *spec.Flow) bool { return access.Allowed(f, access.PrincipalOf(ctx)) }
	}
	a := &application{app: app, opts: opts, flows: map[string]*flowTool{}, prompts: map[string]*flowPrompt{}}
	a.parked.limit = opts.AnswerTimeout
	s := newServer(opts.Version, opts.HostChecked, &sdk.ServerOptions{
		Instructions:      strings.TrimSpace(app.Spec().Description),
		CompletionHandler: a.complete,
		Capabilities:      &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Prompts: &sdk.PromptCapabilities{}, Resources: &sdk.ResourceCapabilities{}},
	}, coded(func(ctx context.Context, err error) string { return a.opts.ErrorText(ctx, err) }), a.visible)
	s.onClose = a.parked.close
	for _, f := range app.Spec().Flows {
		t := newFlowTool(app.Spec(), f, a.unusedName(f.ID))
		a.flows[t.declared.Name] = t
		s.mcp.AddTool(t.declared, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return a.call(ctx, req, t)
		})
	}
	if err := a.addPrompts(s.mcp); err != nil {
		return nil, err
	}
	a.addResources(s.mcp)
	return s, nil
}

// otherCharacters are characters that names of tools cannot have.
var otherCharacters = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9_.-]`) })

// unusedName returns the name of a flow's tool: its id without characters that are not
// allowed, and with a number if another flow has that name.
func (a *application) unusedName(id string) string {
	name := otherCharacters().ReplaceAllString(id, "_")
	name = name[:min(len(name), 120)]
	unique := name
	for n := 2; a.flows[unique] != nil; n++ {
		unique = fmt.Sprintf("%s_%d", name, n)
	}
	return unique
}

// visible is middleware that removes from lists what the caller may not use, and adds the
// caller's sessions to the list of resources.
func (a *application) visible(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, req)
		if err != nil {
			return result, err
		}
		switch r := result.(type) {
		case *sdk.ListToolsResult:
			r.Tools = slices.DeleteFunc(slices.Clone(r.Tools), func(t *sdk.Tool) bool { return !a.opts.Allowed(ctx, a.flows[t.Name].flow) })
		case *sdk.ListPromptsResult:
			r.Prompts = slices.DeleteFunc(slices.Clone(r.Prompts), func(p *sdk.Prompt) bool { return !a.opts.Allowed(ctx, a.prompts[p.Name].flow) })
		case *sdk.ListResourcesResult:
			r.Resources, err = a.sessions(ctx)
		}
		return result, err
	}
}

// maxCompletions is the maximum number of proposals, as the protocol limits it.
const maxCompletions = 100

// complete proposes values for the parts of the address of a session: ids of memories,
// and ids of the caller's sessions, the newest first. It proposes nothing else.
func (a *application) complete(ctx context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	var all []string
	var err error
	if ref := req.Params.Ref; ref != nil && ref.Type == "ref/resource" && ref.URI == sessionTemplate {
		switch req.Params.Argument.Name {
		case "memory":
			for _, m := range a.app.Spec().Memories {
				all = append(all, m.ID)
			}
		case "session":
			all, err = a.completeSession(ctx, req.Params.Context)
		}
	}
	found := []string{}
	for _, value := range all {
		if strings.HasPrefix(value, req.Params.Argument.Value) {
			found = append(found, value)
		}
	}
	shown := found[:min(len(found), maxCompletions)]
	return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: shown, Total: len(found), HasMore: len(found) > len(shown)}}, err
}

// completeSession returns the ids of the caller's sessions of the memory that was chosen.
func (a *application) completeSession(ctx context.Context, chosen *sdk.CompleteContext) ([]string, error) {
	if chosen == nil || a.app.Memory(chosen.Arguments["memory"]) == nil {
		return nil, nil
	}
	infos, err := a.app.Memory(chosen.Arguments["memory"]).Sessions(ctx)
	var ids []string
	for _, s := range newest(access.PrincipalOf(ctx), infos) {
		ids = append(ids, s.id)
	}
	return ids, err
}

// arguments are the arguments of a call by name: values of package value.
type arguments map[string]any

// parseArguments reads the JSON object of a call; nothing is an empty object.
func parseArguments(raw []byte) (arguments, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return arguments{}, nil
	}
	v, err := value.Parse(string(raw))
	if err != nil {
		return nil, fmt.Errorf("the arguments are not JSON: %w", err)
	}
	r, ok := v.(*value.Record)
	if !ok {
		return nil, fmt.Errorf("the arguments must be an object, not %s", value.Describe(v))
	}
	return maps.Collect(r.All()), nil
}

// only returns an error for an argument with another name.
func (a arguments) only(names ...string) error {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("there is no argument %s%s", value.Describe(name), diag.DidYouMean(name, names))
		}
	}
	return nil
}

// text returns a required text.
func (a arguments) text(name string) (string, error) {
	v, ok := a[name]
	if !ok {
		return "", fmt.Errorf("the argument %s is missing", name)
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("the argument %s must be a text, not %s", name, value.Describe(v))
	}
	return s, nil
}

// texts returns required texts, the only arguments of a tool.
func (a arguments) texts(names ...string) ([]string, error) {
	if err := a.only(names...); err != nil {
		return nil, err
	}
	var all []string
	for _, name := range names {
		s, err := a.text(name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// integer returns an optional number between limits.
func (a arguments) integer(name string, preset, least, most int64) (int, error) {
	v, ok := a[name]
	if !ok || v == nil {
		return int(preset), nil
	}
	n, ok := v.(int64)
	if f, isFloat := v.(float64); isFloat && f == float64(int64(f)) {
		n, ok = int64(f), true
	}
	if !ok || n < least || n > most {
		return 0, fmt.Errorf("the argument %s must be a whole number from %d to %d, not %s", name, least, most, value.Describe(v))
	}
	return int(n), nil
}
