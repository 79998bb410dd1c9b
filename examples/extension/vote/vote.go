// Package vote has a step whose answer is the one that a model gives most often.
package vote

import (
	"context"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/part"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

// Part is the type of steps Vote.
func Part() part.Part { return part.Step[Vote]() }

// Vote asks a model several times.
type Vote struct {
	spec.StepBase `doc:"Asks a model several times. The answer is the one that it gives most often." in:"question: text; exactly 1; text" out:"answer: text; exactly 1; text"`
	Model         spec.Ref[spec.ModelEntity] `yaml:"model" jsonschema:"required" calls:"votes" doc:"The id of the chat model."`
	Memory        spec.Ref[*spec.Memory]     `yaml:"memory" doc:"The id of the memory of the conversation. It gets the answer, not the votes."`
	Votes         int                        `yaml:"votes" default:"3" validate:"gte=1,lte=99" doc:"How often the model is asked."`
}

// Rules are what the tags cannot express.
func (v *Vote) Rules() []spec.PartRule {
	return []spec.PartRule{{Code: "even", Key: "votes", Title: "an even number of votes", Doc: "Two answers can have the same number of votes. Write an odd number.",
		Broken: func() string {
			if v.Votes%2 == 0 {
				return fmt.Sprintf("%d votes may be a tie", v.Votes)
			}
			return ""
		}}}
}

// Make returns what asks the model.
func (v *Vote) Make(h *steps.Host) (steps.Process, error) {
	m, err := h.Model(v.Model.To, v.Memory.To)
	return func(ctx context.Context, w *steps.Work) error {
		answer, err := m.Turn(ctx, w, func(ctx context.Context, ask func(context.Context) (chat.Message, error)) (best chat.Message, err error) {
			votes := map[string]int{}
			for range v.Votes {
				answer, err := ask(ctx)
				if err != nil {
					return best, err
				}
				word := strings.TrimSpace(answer.Text())
				if votes[word]++; votes[word] > votes[strings.TrimSpace(best.Text())] || best.Role == "" {
					best = answer
				}
			}
			return best, nil
		})
		if err != nil {
			return err
		}
		return w.Set(0, answer.Text())
	}, err
}
