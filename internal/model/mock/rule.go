package mock

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// rule is a spec.MockRule with its pattern compiled.
type rule struct {
	spec    *spec.MockRule
	pattern *regexp.Regexp // nil: matches always
	system  *regexp.Regexp // nil: matches always
}

func compile(r *spec.MockRule) (rule, error) {
	responses := r.Responses()
	if r.Status != 0 && !slices.Contains(responses, "error") {
		responses = append(responses, "error")
	}
	if len(responses) != 1 {
		return rule{}, errors.New("set exactly one of text, tool_calls, error and echo")
	}
	made := rule{spec: r}
	for _, p := range []struct {
		key, text string
		to        **regexp.Regexp
	}{{"match", r.Match, &made.pattern}, {"system", r.System, &made.system}} {
		if p.text == "" {
			continue
		}
		var err error
		if *p.to, err = regexp.Compile(p.text); err != nil {
			return rule{}, fmt.Errorf("%s %q is not a regular expression: %s", p.key, p.text, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
	}
	return made, nil
}

// fits reports whether the rule matches, with the captures of its pattern.
func (r *rule) fits(last lastMessages) (captures, bool) {
	if r.spec.After != "" && r.spec.After != last.last || r.spec.Round != 0 && r.spec.Round != last.round {
		return captures{}, false
	}
	var got captures
	for _, p := range []struct {
		pattern *regexp.Regexp
		text    string
	}{{r.system, last.system}, {r.pattern, last.user}} {
		if p.pattern == nil {
			continue
		}
		at := p.pattern.FindStringSubmatchIndex(p.text)
		if at == nil {
			return captures{}, false
		}
		outer := got
		got = captures{pattern: p.pattern, text: p.text, at: at, outer: &outer}
	}
	return got, true
}

// calls returns the tool calls of an answer. Their ids are derived from the conversation,
// so that the same conversation gets the same ids.
func (r *rule) calls(got captures, messages []chat.Message) ([]chat.ToolCall, error) {
	seed := sha256.New()
	for _, m := range messages {
		fmt.Fprintf(seed, "%s %q ", m.Role, m.Text())
		for _, c := range m.Calls() {
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
			return nil, fmt.Errorf("the arguments of %s cannot be encoded as JSON", c.Name)
		}
		calls[i] = chat.ToolCall{ID: fmt.Sprintf("call_%s_%d", stem, i), Name: c.Name, Arguments: string(raw)}
	}
	return calls, nil
}

// captures is what the pattern of a rule matched: that of the user message, and then that of the system message.
type captures struct {
	pattern *regexp.Regexp // nil where the rule has none
	text    string         // the searched text
	at      []int          // start and end of each group in text
	outer   *captures      // for groups that the pattern does not have
}

// fill expands the texts inside of a JSON-like value.
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

// expand replaces $1 and ${name} by what the pattern captured. Other text after a dollar
// sign is not changed, so that an answer can contain a price; $$ is a dollar sign.
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

// reference splits "1 and more" or "{name} and more" into the name and the rest.
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

// group returns the text of a group by number or name, and whether the pattern has such a
// group. The text of a group that did not take part in the match is empty.
func (c captures) group(name string) (string, bool) {
	if name == "" || c.pattern == nil {
		return "", false
	}
	i, err := strconv.Atoi(name)
	if err != nil {
		i = c.pattern.SubexpIndex(name)
	}
	if i < 0 || 2*i+1 >= len(c.at) {
		return c.outer.group(name)
	}
	if c.at[2*i] < 0 {
		return "", true
	}
	return c.text[c.at[2*i]:c.at[2*i+1]], true
}
