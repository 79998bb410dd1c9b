package steps

import (
	"context"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/tool"
)

// llmInference calls a chat model. A text output works like a ChatMessage output:
// all inputs and the system message are sent, and the memory is used.
type llmInference struct {
	llmStep
	inputs []slot
	out    slot
	caller *agent // calls the tools of the caller of the run
}

func buildLLMInference(s *spec.LLMInference, env *Env) (Runner, error) {
	sp, err := env.newLLMStep(&s.StepBase, s.Model.To, s.Memory.To, s.SystemMessage)
	if err != nil {
		return nil, err
	}
	out, err := env.single("output", s.Outputs)
	if err != nil {
		return nil, err
	}
	inputs, err := env.slots(s.Inputs)
	if err == nil && len(inputs) == 0 {
		err = fmt.Errorf("needs at least 1 input to send to the model")
	}
	if err != nil {
		return nil, err
	}
	if sp.sources, err = env.sourcesSlot(&s.Sources); err != nil {
		return nil, err
	}
	caller := &agent{llmStep: sp, out: out, limit: defaultMaxToolExecutions, parallel: true, audit: env.Audit}
	if caller.toolbox, err = env.newToolbox(nil, nil, nil); err != nil {
		return nil, err
	}
	caller.repeats, err = caller.newRepeatLimit(&spec.Agent{})
	return &llmInference{llmStep: sp, inputs: inputs, out: out, caller: caller}, err
}

// Process calls the model once, or with tools that the caller of the run offers to the step until
// there is an answer. The memory stores nothing unless there is an answer.
func (s *llmInference) Process(ctx context.Context, row *Row, emit Emit) error {
	ctx, passages, err := s.citing(ctx, row)
	if err != nil {
		return err
	}
	answer, err := s.runTurn(ctx, row, s.inputs, func(ctx context.Context, d *conversation) (chat.Message, error) {
		if s.offersCallerTools(ctx) {
			return s.caller.loop(ctx, row, d)
		}
		answer, err := s.generate(ctx, row, d, offer{})
		if err != nil {
			return answer, err
		}
		switch calls := answer.Calls(); {
		case isEmpty(answer) && len(calls) > 0:
			return answer, fmt.Errorf("the model called a tool, %s, instead of answering; the step offers none", calls[0].Name)
		case isEmpty(answer):
			return answer, errEmptyAnswer
		}
		if answer.HasCalls() {
			answer = answer.WithoutCalls() // nothing runs them, and a memory must not hold calls without results
		}
		if err := s.checkMedia(s.out, answer); err != nil {
			return answer, err
		}
		answer = s.cite(passages, answer)
		return answer, d.add(answer)
	})
	if err != nil {
		return err
	}
	s.reportSources(ctx, row, answer)
	s.answer(row, s.out, answer)
	return emit(row)
}

// offersCallerTools reports whether the caller of the run offers tools to the step.
func (s *llmInference) offersCallerTools(ctx context.Context) bool {
	i, _ := ctx.Value(instructionsKey{}).(*Instructions)
	return i != nil && slices.Contains(i.Steps, s.id) && len(tool.CallerTools(ctx)) > 0
}
