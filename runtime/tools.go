package runtime

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/factory"
)

// newToolFactory is what makes the application's tools.
func (a *App) newToolFactory() *factory.Factory {
	flows := a.nested()
	return factory.New(factory.Options{
		Options: tool.Options{HTTP: a.opts.HTTP, Secret: a.secret},
		Getenv:  a.opts.Getenv,
		Folder:  a.folder(),
		Answer:  a.opts.Clients,
		Memory:  a.memoryTool,
		Log:     a.opts.Log,
		Flow: func(ctx context.Context, call factory.FlowCall, emit func([]any, error) error) error {
			asked := steps.FlowCall{Flow: call.Flow, Inputs: call.Inputs, Session: call.Caller.Session, Number: call.Caller.Row}
			return flows(ctx, asked, func(outputs []any, failed *steps.Error) error {
				if failed != nil {
					return emit(outputs, failed)
				}
				return emit(outputs, nil)
			})
		},
	})
}

// folder is where the application's document lies; empty for one that is no
// file of this machine.
func (a *App) folder() string {
	file := a.spec.Place().Span().File
	if file == nil || strings.Contains(file.Path, "://") {
		return ""
	}
	return filepath.Dir(file.Path)
}

// checkTools asks the tools of a flow, and of the flows that it runs, whether
// they can be called at all, before the first row.
func (a *App) checkTools(ctx context.Context, f *spec.Flow, known map[*spec.Flow]bool) error {
	if known[f] {
		return nil
	}
	known[f] = true
	for _, item := range f.Steps {
		for _, ref := range toolsOf(item.Step) {
			if err := a.checkTool(ctx, ref.To); err != nil {
				return wrapStepError(item.Step, err)
			}
		}
		for _, called := range callees(item.Step) {
			if err := a.checkTools(ctx, called, known); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *App) checkTool(ctx context.Context, t spec.Tool) error {
	if t == nil || a.tools[t.EntityID()] == nil {
		return nil
	}
	made, err := a.tools[t.EntityID()]()
	if err != nil {
		return err
	}
	if c, ok := made.(tool.Preflighter); ok {
		return c.Check(ctx)
	}
	return nil
}

// toolsOf are the tools that a step may call.
func toolsOf(s spec.Step) []spec.Ref[spec.Tool] {
	switch s := s.(type) {
	case *spec.InvokeTool:
		return []spec.Ref[spec.Tool]{s.Tool}
	case *spec.Agent:
		return s.Tools
	}
	return nil
}
