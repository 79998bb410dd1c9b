// Package tooltest is the contract suite of tools: what every implementation of
// tool.Tool must do, whether it calls a server, a process, a flow or a client.
package tooltest

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// Case is one implementation.
type Case struct {
	Context func(context.Context) context.Context // prepares the context of calls; nil for none
	Tool    tool.Tool                             // a tool with at least one required input
	Args    map[string]any                        // arguments of calls that succeed, for all required inputs
	Failing map[string]any                        // arguments of calls that fail; nil where none do
}

// Run checks the tool of a case against the contract.
func Run(t *testing.T, c Case) {
	if c.Context == nil {
		c.Context = func(ctx context.Context) context.Context { return ctx }
	}
	t.Run("info", c.info)
	t.Run("call", c.call)
	t.Run("concurrent calls", c.concurrent)
	t.Run("invalid arguments", c.invalidArguments)
	t.Run("failure", c.failure)
	t.Run("canceled", c.canceled)
}

// info describes the tool completely and does not change.
func (c Case) info(t *testing.T) {
	info := c.Tool.Info()
	if info.ID == "" || info.Name == "" {
		t.Errorf("id %q, name %q", info.ID, info.Name)
	}
	var schema struct {
		Type       string
		Properties map[string]json.RawMessage
	}
	if err := json.Unmarshal(info.Parameters, &schema); err != nil || schema.Type != "object" {
		t.Fatalf("the schema is not that of an object: %s (%v)", info.Parameters, err)
	}
	for _, in := range info.Inputs {
		if _, ok := schema.Properties[in.ID]; !ok {
			t.Errorf("the schema has no input %s", in.ID)
		}
	}
	if again := c.Tool.Info(); again.ID != info.ID || string(again.Parameters) != string(info.Parameters) {
		t.Error("the second Info differs from the first")
	}
}

// A call returns a value of the language and does not change its arguments.
func (c Case) call(t *testing.T) {
	args := maps.Clone(c.Args)
	result, err := c.Tool.Call(c.Context(t.Context()), args)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(args, c.Args) {
		t.Errorf("the arguments were changed to %v", args)
	}
	if raw := value.JSON(value.FromGo(result)); !json.Valid(raw) {
		t.Errorf("the result is not a value: %s", raw)
	}
}

// A tool is safe for concurrent use.
func (c Case) concurrent(t *testing.T) {
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			if _, err := c.Tool.Call(c.Context(t.Context()), c.Args); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}

// Unknown and missing arguments are an ArgumentError with the name of the argument.
func (c Case) invalidArguments(t *testing.T) {
	unknown := maps.Clone(c.Args)
	unknown["no_such_argument"] = 1
	c.expectArgumentError(t, unknown, "no_such_argument")
	for _, in := range c.Tool.Info().Inputs {
		if in.IsOptional() {
			continue
		}
		missing := maps.Clone(c.Args)
		delete(missing, in.ID)
		c.expectArgumentError(t, missing, in.ID)
		return
	}
	t.Error("the tool has no required input")
}

func (c Case) expectArgumentError(t *testing.T, args map[string]any, argument string) {
	t.Helper()
	_, err := c.Tool.Call(c.Context(t.Context()), args)
	wrong, ok := errors.AsType[*tool.ArgumentError](err)
	if !ok || wrong.Argument != argument || wrong.Tool != c.Tool.Info().ID {
		t.Errorf("arguments %v: got %v, want an error about %s", slices.Sorted(maps.Keys(args)), err, argument)
	}
}

// A failure names the tool, on one line.
func (c Case) failure(t *testing.T) {
	if c.Failing == nil {
		t.Skip("calls of this tool do not fail")
	}
	result, err := c.Tool.Call(c.Context(t.Context()), c.Failing)
	if err == nil {
		t.Fatalf("the call returned %v", result)
	}
	if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "tool "+c.Tool.Info().ID) {
		t.Errorf("got %q, want one line with the id of the tool", err)
	}
	remote, isRemote := errors.AsType[*tool.Error](err)
	local, isLocal := errors.AsType[*tool.FailedError](err)
	if id := c.Tool.Info().ID; !(isRemote && remote.Tool == id) && !(isLocal && local.Tool == id) {
		t.Errorf("got a %T", err)
	}
}

// A call with a canceled context returns its error.
func (c Case) canceled(t *testing.T) {
	ctx, cancel := context.WithCancel(c.Context(t.Context()))
	cancel()
	if _, err := c.Tool.Call(ctx, c.Args); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
