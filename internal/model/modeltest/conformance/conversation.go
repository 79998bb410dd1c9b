package conformance

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The senders of parts.
const (
	user      = "user"
	assistant = "assistant"
	tool      = "tool"
	system    = "system"
)

// part is a piece of a conversation, in a form that all wires share.
type part struct {
	role  string // the sender
	kind  string // an Item.Kind, or result, media
	text  string // the text; the arguments of a call
	id    string // of a call, and of a result
	name  string // the tool of a call, the type of an unknown item, the field of reasoning
	token string // what is opaque: a signature, or what is encrypted
	json  node   // the part as it was sent
	where string // its place in the request, such as messages.1.content.0
}

// conversation is a request.
type conversation struct {
	wire     *wireFormat
	server   Server      // that was called
	origin   string      // the server and the account
	path     string      // of the address, after the name of the server
	scenario Scenario    // that runs
	model    string      // the provider's name of the model
	header   http.Header // of the request
	body     node        // the request
	stream   bool        // the answer is to be streamed
	reasons  bool        // the model reasons
	tools    []string    // the names of the functions
	forbids  bool        // none of them may be called
	parts    []part      // system messages first where they have a separate place
	dropped  array       // reasoning that the answer reports as ignored
}

// add adds a part.
func (c *conversation) add(p part) { c.parts = append(c.parts, p) }

// turnStart returns the index of the first part after the newest message of the user.
func (c *conversation) turnStart() int {
	for i, p := range slices.Backward(c.parts) {
		if p.role == user {
			return i + 1
		}
	}
	return 0
}

// run is an answer within a conversation: parts of the assistant that follow each other.
type run struct{ from, to int }

// runs returns the answers from a part on.
func (c *conversation) runs(from int) (list []run) {
	for i := from; i < len(c.parts); i++ {
		if c.parts[i].role != assistant {
			continue
		}
		r := run{from: i, to: i + 1}
		for r.to < len(c.parts) && c.parts[r.to].role == assistant {
			r.to++
		}
		list = append(list, r)
		i = r.to
	}
	return list
}

// stepIndex is the number of answers since the newest message of the user.
func (c *conversation) stepIndex() int { return len(c.runs(c.turnStart())) }

// content returns what the model reads of a part.
func (p part) content() []string {
	list := []string{p.role, p.kind, p.text, p.id, p.name, p.token}
	if p.kind == "media" || p.kind == "unknown" || p.kind == "server" {
		list = append(list, without(p.json, "cache_control").canonical())
	}
	return list
}

// prefix returns the hash of what precedes a part: system message, tools and parts.
func (c *conversation) prefix(before int) string {
	seen := []string{c.body.at(c.wire.toolsField).canonical()}
	for _, p := range c.parts[:before] {
		seen = append(seen, p.content()...)
	}
	return hex.EncodeToString(seal(seen...)[:8])
}

// prefixes returns digests of the request up to each part, without reasoning: some providers want only that of the
// current turn.
func (c *conversation) prefixes() []string {
	digest := string(seal(c.body.at(c.wire.toolsField).canonical())[:8])
	list := []string{hex.EncodeToString([]byte(digest))}
	for _, p := range c.parts {
		if p.kind == "reasoning" || p.kind == "redacted" {
			continue
		}
		p.token = ""
		digest = string(seal(append(p.content(), digest)...)[:8])
		list = append(list, hex.EncodeToString([]byte(digest)))
	}
	return list
}

// maker identifies what makes answers: the server, the account and the model.
func (c *conversation) maker() string { return c.origin + " " + c.model }

// identify returns the name of a part that this server has issued.
func (c *conversation) identify(p part) (ref, bool) {
	if t, ok := tokenOf(p); ok {
		return ref{Step: t.Step, Reasons: t.Reasons, Item: t.Item, Nonce: t.Nonce}, t.Origin == c.origin && t.Model == c.model && t.Scenario == c.scenario.Name
	}
	switch p.kind {
	case "call":
		return parseRef(p.id, c.maker(), c.scenario.Name)
	case "text", "commentary":
		r, ok := findRef(p.text, c.maker(), c.scenario.Name)
		return r, ok && c.sent(r, p.text)
	}
	return ref{}, false
}

// sent reports whether an answer has a text: one that was edited, or joined from several answers, has not.
func (c *conversation) sent(r ref, text string) bool {
	a, ok := c.reissue(r, token{})
	if !ok || r.Item >= len(a.items) {
		return false
	}
	text = strings.TrimSpace(text)
	return text == strings.TrimSpace(a.items[r.Item].Text) || text == strings.TrimSpace(a.joined())
}

// tokenOf returns the token of a part: its own, or that in the text of its reasoning.
func tokenOf(p part) (token, bool) {
	if p.token != "" {
		return parseToken(p.token)
	}
	if p.kind == "call" || p.kind == "text" || p.kind == "commentary" {
		return token{}, false
	}
	for text := range p.json.strings() {
		if found := findTokens(text); len(found) > 0 {
			return found[0], true
		}
	}
	return token{}, false
}

// reissue makes the answer again that a name belongs to. The tokens of its items need the prefix of t.
func (c *conversation) reissue(r ref, t token) (answer, bool) {
	if r.Step >= len(c.scenario.Steps) {
		return answer{}, false
	}
	step, i := c.scenario.step(r.Step)
	t.Origin, t.Model, t.Scenario, t.Nonce, t.Step, t.Reasons = c.origin, c.model, c.scenario.Name, r.Nonce, i, r.Reasons
	a := answer{Step: step, items: step.items(r.Reasons), token: t}
	for k := range a.items {
		a.items[k].Text = strings.ReplaceAll(a.items[k].Text, "{ref}", a.ref(k))
	}
	return a, true
}

// breach is a way in which a request breaks a rule.
type breach struct {
	kind  string // for rules about items: lost, altered, reordered, foreign, prefix
	at    string // the place in the request
	field string // the field
	value string // its value
	name  string // of a tool, or the kind of an item
	count int    // how many there are
	limit int    // how many there may be
}

// fill replaces the placeholders of a text of the rules.
func (b breach) fill(text string, c *conversation) string {
	return strings.NewReplacer("{at}", b.at, "{field}", b.field, "{value}", b.value, "{name}", b.name,
		"{index}", fmt.Sprint(messageIndex(b.at)), "{position}", fmt.Sprint(messageIndex(b.at)+1), "{count}", fmt.Sprint(b.count), "{limit}", fmt.Sprint(b.limit),
		"{model}", c.model, "{kind}", b.kind).Replace(text)
}

// messageIndex returns the index of the message in a place such as contents.1.parts.0; 0 where there is none.
func messageIndex(where string) int {
	fields := strings.SplitN(where, ".", 3)
	if len(fields) < 2 {
		return 0
	}
	i, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return i
}
