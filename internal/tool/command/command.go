// Package command runs programs as tools. The arguments are a JSON object on standard
// input, the result is JSON on standard output, or an image or another file. No shell is involved, and a program sees
// only the environment variables that it is given.
package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/containment"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/mediatype"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// Env is the environment of a program.
type Env struct {
	Getenv     func(string) string               // the environment that the document sees
	Secret     func(spec.Secret) (string, error) // resolves references to a secret manager; nil uses the text of the document
	Folder     string                            // base of relative paths: the folder of the tool's document
	Supervisor *subprocess.Supervisor            // starts the program; may be nil
	Container  *containment.Container            // limits the program; nil for no limits
}

// New returns the handler of a CommandTool. It finds the program and starts nothing.
func New(t *spec.CommandTool, env Env) (tool.ClientHandler, error) {
	given, err := tool.Environment(t.Env, env.Secret)
	if err != nil {
		return nil, err
	}
	return answer(append([]string{t.Program}, t.Args...), given, time.Duration(t.Timeout), env)
}

// Line returns a handler that runs a command line, split as a shell would split it; no
// shell runs it. timeout limits a call; 0 means no limit.
func Line(line string, timeout time.Duration, env Env) (tool.ClientHandler, error) {
	words, err := Split(line)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, errors.New("no program given")
	}
	return answer(words, nil, timeout, env)
}

// answer returns a handler that runs the program of words.
func answer(words []string, given map[string]string, timeout time.Duration, env Env) (tool.ClientHandler, error) {
	path, err := env.Container.Find(words[0], env.Folder, env.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	environ := env.Container.Environment(env.Getenv, given)
	name := words[0]
	return func(ctx context.Context, req tool.Request) (any, error) {
		p := subprocess.Program{Path: path, Args: words[1:], Env: append(environ[:len(environ):len(environ)], callerEnv(req)...), Supervisor: env.Supervisor}
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", timeout))
			defer cancel()
		}
		out, err := env.Container.Wrap(p).Run(ctx, req.Args)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if strings.TrimSpace(string(out)) == "" {
			return nil, nil
		}
		if kind := mediatype.Detect(out); mediatype.KindOf(kind) != "" && !mediatype.IsText(out) {
			return out, nil // an image or another file
		}
		v, err := value.Parse(string(out))
		if err != nil {
			return nil, fmt.Errorf("the output of %s is not JSON: %s", name, httpx.SingleLine(string(out[:min(len(out), 1<<10)]), 100))
		}
		return v, nil
	}, nil
}

// callerEnv returns the environment variables that identify the caller.
func callerEnv(req tool.Request) []string {
	return []string{"QTYPE_TOOL=" + clean(req.Tool.ID), "QTYPE_SESSION=" + clean(req.Caller.Session), "QTYPE_ROW=" + strconv.FormatInt(req.Caller.Row, 10)}
}

// clean removes the bytes that an environment variable cannot contain.
func clean(text string) string { return strings.ReplaceAll(text, "\x00", "") }

// Split splits a command line into words as a shell does: at unquoted and unescaped
// white space. It expands nothing; what only a shell could do is an error.
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
				return nil, errors.New("trailing backslash")
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
			return nil, fmt.Errorf("%q is shell syntax, and no shell is used; quote it", r)
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

// quoted appends the text between the quote at start and the next one of its kind, and
// returns the index of that. Between double quotes a backslash escapes a quote or a
// backslash.
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
	return 0, fmt.Errorf("unclosed quote %c", runes[start])
}
