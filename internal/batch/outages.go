package batch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/steps"
)

// addToolFailure counts a call of a tool that failed. The model got the error, so that the row may be done.
func (s *summary) addToolFailure(ev steps.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := terminal.Clean(ev.Tool + ": " + ev.Err.Error())
	if s.tools[what] > 0 || len(s.tools) < maxReasons {
		s.tools[what]++
	}
}

// addDropped counts a call of a model that was sent without a part of the conversation.
func (s *summary) addDropped(ev steps.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := terminal.Clean(ev.Step + ": " + ev.Text)
	if s.dropped[what] > 0 || len(s.dropped) < maxReasons {
		s.dropped[what]++
	}
}

// reasoningDropped returns a line with what was not sent to models; empty if there was nothing.
func (s *summary) reasoningDropped() string { return s.frequent("not sent", s.dropped) }

// handled returns a line with the rows on which steps have failed that then dropped them or continued without
// their outputs; empty if there were none.
func (s *summary) handled() string {
	policies := map[string]string{}
	for _, step := range s.job.flow.Plan().Steps {
		policies[step.Step.EntityID()] = step.Step.Common().OnError
	}
	var parts []string
	for _, step := range s.progress.Steps() {
		done := map[string]string{"skip": "dropped", "continue": "continued without the outputs"}[policies[step.Step]]
		if done != "" && step.Failed > 0 {
			parts = append(parts, fmt.Sprintf("%s: failed on %s, %s", step.Step, textfmt.Count(step.Failed, "row"), done))
		}
	}
	return strings.Join(parts, " · ")
}

// toolFailures returns a line with the most frequent failed calls of tools by models; empty if
// there were none.
func (s *summary) toolFailures() string { return s.frequent("failed tool calls", s.tools) }

// frequent returns a line with the most frequent reasons; empty if there are none.
func (s *summary) frequent(what string, counts map[string]int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts, more := mostFrequent(counts)
	if len(parts) == 0 {
		return ""
	}
	if more > 0 {
		parts = append(parts, textfmt.Count(more, "reason")+" more")
	}
	return what + " " + strings.Join(parts, " · ")
}

// rejections returns a line with the number of requests that were sent again without the oldest
// messages of a conversation; empty if there were none.
func (s *summary) rejections() string {
	n := s.shortened.Load()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("rejected by a provider, as too long or without a reason, and sent again without the oldest messages: %s", textfmt.Count(n, "request"))
}

// outages returns a line with the calls that fallbacks answered, and with the circuit
// breakers that have opened; empty if there were none.
func (s *summary) outages() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(s.fallbacks)) {
		parts = append(parts, fmt.Sprintf("%s × %s", textfmt.Thousands(s.fallbacks[what]), terminal.Clean(what)))
	}
	if len(parts) > 0 {
		parts[0] = "fallbacks " + parts[0]
	}
	for _, b := range s.job.app.CircuitBreakers() {
		opened := "once"
		if b.Opened != 1 {
			opened = textfmt.Thousands(b.Opened) + " times"
		}
		text := fmt.Sprintf("circuit breaker of %s opened %s, %s not sent", b.Endpoint, opened, textfmt.Count(b.Stopped, "call"))
		if b.Open {
			text += ", open now"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " · ")
}
