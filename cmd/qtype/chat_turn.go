package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// maxShown is how many characters of a tool's arguments and result are shown.
const maxShown = 200

// turn says something and shows the answer while it comes. What goes wrong costs
// the turn and not the conversation.
func (t *conversation) turn(ctx context.Context, said string, interrupts <-chan os.Signal) error {
	within, cancel := stoppable(ctx, interrupts)
	defer cancel()
	values := map[string]any{t.says.ID: said}
	for name, v := range t.fixed {
		values[name] = v
	}
	heard := &stream{talk: t, speakers: answerSteps(t.flow, t.answers.ID, map[*spec.Flow]bool{})}
	kinds := []steps.EventKind{steps.EventToolCall, steps.EventToolResult}
	if t.outTerminal {
		kinds = append(kinds, steps.EventText)
	}
	rows := slices.Values([]runtime.Input{{Session: t.session, Values: values}})
	for res, err := range t.app.Run(within, t.flow.ID, rows, runtime.WithEvents(heard.event, kinds...)) {
		switch {
		case errors.Is(context.Cause(within), errStopped):
			heard.end("")
			fmt.Fprintln(t.err, "(stopped)")
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			t.reportError(heard, err)
		case res.Err != nil:
			t.reportError(heard, res.Err)
		default:
			answer, _ := res.Get(t.answers.ID)
			heard.end(printable(value.Text(answer)))
		}
	}
	return nil
}

// reportError tells why a turn failed.
func (t *conversation) reportError(heard *stream, err error) {
	heard.end("")
	t.failed++
	fmt.Fprintf(t.err, "error: %s%s\n", clean(err.Error()), advice(err))
}

// answerSteps are the steps whose text is the answer: those that write the variable,
// and those that do so in the flows that the flow runs.
func answerSteps(f *spec.Flow, output string, seen map[*spec.Flow]bool) map[string]bool {
	found := map[string]bool{}
	if f == nil || seen[f] {
		return found
	}
	seen[f] = true
	inner := func(f *spec.Flow, output string) {
		for id := range answerSteps(f, output, seen) {
			found[id] = true
		}
	}
	for _, item := range f.Steps {
		base := item.Step.Common()
		writes := slices.ContainsFunc(base.Outputs, func(r spec.Ref[*spec.Variable]) bool { return r.ID == output })
		switch s := item.Step.(type) {
		case *spec.InvokeFlow:
			for _, b := range s.OutputBindings {
				if b.Var.ID == output {
					inner(s.Flow.To, b.Name)
				}
			}
		case *spec.Switch:
			for _, c := range s.Cases {
				inner(c.Flow.To, output)
			}
			inner(s.Else.To, output)
		case *spec.Loop:
			inner(s.Flow.To, output)
		case *spec.Parallel:
			for _, r := range s.Flows {
				inner(r.To, output)
			}
		default:
			if writes {
				found[item.Step.EntityID()] = true
			}
		}
	}
	return found
}

// stream shows an answer while it is written.
type stream struct {
	talk     *conversation
	speakers map[string]bool
	shown    strings.Builder // of the answer, since the last tool call
	rest     string          // the first bytes of a character that was cut
	open     bool            // the line is not ended
}

// event shows what happens in the turn. It is called from several goroutines.
func (s *stream) event(ev steps.Event) {
	t := s.talk
	t.mu.Lock()
	defer t.mu.Unlock()
	switch ev.Kind {
	case steps.EventText:
		if s.speakers[ev.Step] {
			s.write(ev.Text)
		}
	case steps.EventToolCall:
		s.abort()
		s.note("→ " + ev.Tool + " " + ev.Text)
	case steps.EventToolResult:
		if ev.Err != nil {
			s.note("← error: " + ev.Err.Error())
			return
		}
		s.note("← " + ev.Text)
	}
}

// note is a line about a tool.
func (s *stream) note(text string) {
	if s.talk.quiet {
		return
	}
	text = clean(text)
	if runes := []rune(text); len(runes) > maxShown {
		text = string(runes[:maxShown-1]) + "…"
	}
	fmt.Fprintln(s.talk.err, "  "+text)
}

// write shows more of the answer's text; a character that came by half waits for the rest.
func (s *stream) write(text string) {
	text = s.rest + text
	whole := len(text)
	for cut := 1; cut < utf8.UTFMax && cut <= len(text); cut++ {
		if utf8.RuneStart(text[len(text)-cut]) {
			if !utf8.FullRuneInString(text[len(text)-cut:]) {
				whole = len(text) - cut
			}
			break
		}
	}
	text, s.rest = text[:whole], text[whole:]
	text = printable(text)
	if text == "" {
		return
	}
	s.shown.WriteString(text)
	s.open = true
	fmt.Fprint(s.talk.out, text)
}

// abort ends the line of what was shown so far.
func (s *stream) abort() {
	if s.open {
		fmt.Fprintln(s.talk.out)
	}
	s.open, s.rest = false, ""
	s.shown.Reset()
}

// end shows the answer, or the part of it that was not shown while it came.
func (s *stream) end(answer string) {
	s.talk.mu.Lock()
	defer s.talk.mu.Unlock()
	if answer != s.shown.String() || answer == "" {
		s.abort()
	}
	if answer != "" && s.shown.Len() == 0 {
		fmt.Fprint(s.talk.out, answer)
		s.open = true
	}
	if s.open {
		fmt.Fprintln(s.talk.out)
	}
}

// printable is text without anything that a terminal would act upon but line ends and tabs.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unsafe(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}
