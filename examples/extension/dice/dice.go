// Package dice has a tool that rolls dice.
package dice

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/qtype-dev/qtype/part"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// Part is the type of tools Dice.
func Part() part.Part { return part.Tool[Dice]() }

// Dice rolls dice and adds the numbers.
type Dice struct {
	spec.ToolBase `doc:"Rolls dice and adds the numbers." without:"inputs,outputs,strict,grammar"`
	Sides         int `yaml:"sides" default:"6" validate:"gte=2" doc:"The number of sides of a die."`
}

// Arguments are what a caller passes.
func (d *Dice) Arguments() []*spec.Variable {
	return []*spec.Variable{{ID: "count", Type: spec.Type{Name: "int"}}}
}

// Results are what a call returns.
func (d *Dice) Results() (vars []*spec.Variable, declared bool) {
	return []*spec.Variable{{ID: "total", Type: spec.Type{Name: "int"}}}, true
}

// HasEffects returns false, so that tests call the tool.
func (d *Dice) HasEffects() bool { return false }

// Make returns what rolls the dice.
func (d *Dice) Make(tool.Host) (tool.ClientHandler, error) {
	return func(_ context.Context, call tool.Request) (any, error) {
		var args struct{ Count, total int }
		if err := json.Unmarshal(call.Args, &args); err != nil {
			return nil, err
		}
		if args.Count < 1 || args.Count > 1000 {
			return nil, fmt.Errorf("%d dice cannot be rolled", args.Count)
		}
		for range args.Count {
			args.total += 1 + rand.IntN(d.Sides)
		}
		return args.total, nil
	}, nil
}
