package mock

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// rule is a spec.MockRule with its pattern compiled.
type rule struct {
	spec    *spec.MockRule
	pattern *regexp.Regexp // nil: the rule always matches
}

func compile(r *spec.MockRule) (rule, error) {
	ways := 0
	for _, set := range []bool{r.Text != "", len(r.ToolCalls) > 0, r.Error != "" || r.Status != 0, r.Echo} {
		if set {
			ways++
		}
	}
	if ways != 1 {
		return rule{}, errors.New("say exactly one of text, tool_calls, error and echo")
	}
	if r.Match == "" {
		return rule{spec: r}, nil
	}
	pattern, err := regexp.Compile(r.Match)
	if err != nil {
		return rule{}, fmt.Errorf("match %q is not a regular expression: %s", r.Match, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return rule{spec: r, pattern: pattern}, nil
}

// fits tells whether the rule answers what was heard.
func (r *rule) fits(said lastMessages) (captures, bool) {
	if r.spec.After != "" && r.spec.After != said.last {
		return captures{}, false
	}
	if r.pattern == nil {
		return captures{}, true
	}
	at := r.pattern.FindStringSubmatchIndex(said.user)
	if at == nil {
		return captures{}, false
	}
	return captures{pattern: r.pattern, text: said.user, at: at}, true
}

// calls makes the tool calls of an answer. Their ids come from what was said,
// so the same conversation gets the same ids and another turn gets others.
func (r *rule) calls(got captures, messages []chat.Message) ([]chat.ToolCall, error) {
	seed := sha256.New()
	for _, m := range messages {
		fmt.Fprintf(seed, "%s %q ", m.Role, m.Text())
		for _, c := range m.ToolCalls {
			fmt.Fprintf(seed, "%q ", c.ID)
		}
	}
	stem := hex.EncodeToString(seed.Sum(nil))[:16]
	calls := make([]chat.ToolCall, len(r.spec.ToolCalls))
	for i, c := range r.spec.ToolCalls {
		arguments := got.fill(c.Arguments)
		if c.Arguments == nil {
			arguments = map[string]any{}
		}
		raw, err := json.Marshal(arguments)
		if err != nil {
			return nil, fmt.Errorf("the arguments of %s cannot be written as JSON", c.Name)
		}
		calls[i] = chat.ToolCall{ID: fmt.Sprintf("call_%s_%d", stem, i), Name: c.Name, Arguments: string(raw)}
	}
	return calls, nil
}

// captures is what a rule's pattern found.
type captures struct {
	pattern *regexp.Regexp // nil where the rule has none
	text    string         // what was searched
	at      []int          // start and end of each group in text
}

// fill expands the texts inside a JSON-like value.
func (c captures) fill(v any) any {
	switch v := v.(type) {
	case string:
		return c.expand(v)
	case map[string]any:
		filled := make(map[string]any, len(v))
		for k, item := range v {
			filled[k] = c.fill(item)
		}
		return filled
	case []any:
		filled := make([]any, len(v))
		for i, item := range v {
			filled[i] = c.fill(item)
		}
		return filled
	}
	return v
}

// expand replaces $1 and ${name} by what the pattern captured. Anything else
// behind a dollar stays, so that a price may stand in an answer; $$ is a dollar
// where $1 would be meant otherwise.
func (c captures) expand(text string) string {
	if c.pattern == nil || !strings.Contains(text, "$") {
		return text
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after := reference(rest)
		switch value, known := c.group(name); {
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			text = rest[1:]
		case known:
			b.WriteString(value)
			text = after
		default:
			b.WriteByte('$')
			text = rest
		}
	}
}

// reference splits "1 and more" or "{name} and more" into the name and what follows.
func reference(text string) (name, rest string) {
	if inner, braced := strings.CutPrefix(text, "{"); braced {
		if name, rest, closed := strings.Cut(inner, "}"); closed {
			return name, rest
		}
		return "", text
	}
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	return text[:end], text[end:]
}

// group is the text of a group by number or name. It tells whether the pattern
// has such a group; one that took no part in the match is empty.
func (c captures) group(name string) (string, bool) {
	i, err := strconv.Atoi(name)
	if err != nil {
		i = c.pattern.SubexpIndex(name)
	}
	if name == "" || i < 0 || 2*i+1 >= len(c.at) {
		return "", false
	}
	if c.at[2*i] < 0 {
		return "", true
	}
	return c.text[c.at[2*i]:c.at[2*i+1]], true
}
