package runtime

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/toolbox"
)

// newToolbox is what makes the application's tools.
func (a *App) newToolbox() *toolbox.Box {
	flows := a.nested()
	return toolbox.New(toolbox.Options{
		Options: tool.Options{HTTP: a.opts.HTTP, Secret: a.secret},
		Getenv:  a.opts.Getenv,
		Folder:  a.folder(),
		Answer:  a.opts.Clients,
		Log:     a.opts.Log,
		Flow: func(ctx context.Context, call toolbox.FlowCall, emit func([]any, error) error) error {
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
