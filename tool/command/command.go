// Package command runs programs as tools: the arguments go in as a JSON object
// on standard input, the result comes out as JSON on standard output. No shell
// stands between, and a program sees of our environment only what it is given.
package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// Env is what a program finds around it.
type Env struct {
	Getenv func(string) string               // the environment that the document sees
	Secret func(spec.Secret) (string, error) // resolves what stands under env; nil takes it as it is written
	Folder string                            // where relative paths of programs begin: beside the tool's document
}

// New makes the answer of a CommandTool. It finds the program and starts nothing.
func New(t *spec.CommandTool, around Env) (tool.ClientHandler, error) {
	given, err := tool.Environment(t.Env, around.Secret)
	if err != nil {
		return nil, err
	}
	return answer(append([]string{t.Program}, t.Args...), given, time.Duration(t.Timeout), around)
}

// Line makes an answer of a command line, split as a shell would split it; no
// shell runs it. A call may take as long as timeout.
func Line(line string, timeout time.Duration, around Env) (tool.ClientHandler, error) {
	words, err := Split(line)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, errors.New("there is not a program")
	}
	return answer(words, nil, timeout, around)
}

// answer runs the program of words for each call.
func answer(words []string, given map[string]string, timeout time.Duration, around Env) (tool.ClientHandler, error) {
	path, err := subprocess.Find(words[0], around.Folder, around.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	env := subprocess.Environment(around.Getenv, given)
	name := words[0]
	return func(ctx context.Context, ask tool.Request) (any, error) {
		p := subprocess.Program{Path: path, Args: words[1:], Env: append(env[:len(env):len(env)], callerEnv(ask)...)}
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it took longer than %s (timeout) and was stopped", timeout))
			defer cancel()
		}
		out, err := p.Run(ctx, ask.Args)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if strings.TrimSpace(string(out)) == "" {
			return nil, nil
		}
		v, err := value.Parse(string(out))
		if err != nil {
			return nil, fmt.Errorf("%s printed no JSON: %s", name, httpx.SingleLine(string(out[:min(len(out), 1<<10)]), 100))
		}
		return v, nil
	}, nil
}

// callerEnv tells a program who asks.
func callerEnv(ask tool.Request) []string {
	return []string{"QTYPE_TOOL=" + clean(ask.Tool.ID), "QTYPE_SESSION=" + clean(ask.Caller.Session), "QTYPE_ROW=" + strconv.FormatInt(ask.Caller.Row, 10)}
}

// clean drops what no variable of an environment can hold.
func clean(text string) string { return strings.ReplaceAll(text, "\x00", "") }

// Split cuts a command line into words as a shell does: at blanks, where no
// quotes hold them together and no backslash stands before them. Nothing is
// expanded, and what only a shell could do is an error.
func Split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun := false
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; {
		case r == '\'' || r == '"':
			end, err := quoted(runes, i, &word)
			if err != nil {
				return nil, err
			}
			i, begun = end, true
		case r == '\\':
			if i++; i == len(runes) {
				return nil, errors.New("it ends with a backslash")
			}
			word.WriteRune(runes[i])
			begun = true
		case r == ' ' || r == '\t' || r == '\n':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		case strings.ContainsRune("|&;<>$`()", r):
			return nil, fmt.Errorf("%q means something to a shell only, and none is run; quote it", r)
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// quoted adds the text between the quote at start and the next one of its kind,
// whose place it gives. Between double quotes a backslash keeps a quote or a
// backslash what it is.
func quoted(runes []rune, start int, word *strings.Builder) (int, error) {
	for i := start + 1; i < len(runes); i++ {
		switch {
		case runes[i] == runes[start]:
			return i, nil
		case runes[i] == '\\' && runes[start] == '"' && i+1 < len(runes) && (runes[i+1] == '"' || runes[i+1] == '\\'):
			i++
		}
		word.WriteRune(runes[i])
	}
	return 0, fmt.Errorf("the quote %c is not closed", runes[start])
}
