package conformance

import (
	"maps"
	"slices"
	"strings"
)

// sent is an answer of this server that came back within a conversation.
type sent struct {
	ref            // its name
	token    token // of one of its items, if any came back
	from     int   // the index of its first part
	parts    []part
	reasoned bool // some of its reasoning came back
}

// answers returns the answers that came back, from a part on.
func (c *conversation) answers(from int) (list []sent) {
	for _, run := range c.runs(from) {
		one := sent{from: run.from}
		named := false
		for i := run.from; i < run.to; i++ {
			p := c.parts[i]
			r, ok := c.identify(p)
			switch {
			case ok && !named:
				one.ref, named = r, true
			case ok && r.Nonce != one.Nonce && c.wire.single && messageIndex(p.where) == messageIndex(c.parts[one.from].where):
				// an answer that was continued is one message
			case ok && r.Nonce != one.Nonce:
				list = append(list, one)
				one = sent{ref: r, from: i}
			}
			if t, ok := tokenOf(p); ok && (t.Nonce == one.Nonce || !c.wire.single) {
				one.token, one.reasoned = t, one.reasoned || p.kind == "reasoning" || p.kind == "redacted"
			}
			one.parts = append(one.parts, p)
		}
		if named {
			list = append(list, one)
		}
	}
	return list
}

// scope returns the answers that a check is about.
func (c *conversation) scope(p Check) []sent {
	if p.Scope == "turn" {
		return c.answers(c.turnStart())
	}
	return c.answers(0)
}

// carried: the items of an answer come back, unchanged and in their order.
func carried(c *conversation, p Check) (list []breach) {
	for _, s := range c.scope(p) {
		if p.Partial && !s.reasoned || p.SamePrefix && s.Nonce != c.nonce(s.from) {
			continue
		}
		for _, b := range c.compare(s) {
			if (p.Breaches == nil || slices.Contains(p.Breaches, b.kind)) && (p.Kinds == nil || slices.Contains(p.Kinds, b.name)) {
				list = append(list, b)
			}
		}
	}
	return list
}

// nonce identifies the answer to a request that ends before a part.
func (c *conversation) nonce(before int) string {
	return letters(seal(c.origin, c.model, c.scenario.Name, c.prefix(before)), 4)
}

// compare returns how an answer that came back differs from the one that was sent.
func (c *conversation) compare(s sent) (list []breach) { //nolint:cyclop // one case for each way of breaking the order
	a, ok := c.reissue(s.ref, s.token)
	if !ok {
		return []breach{{kind: "altered", at: s.parts[0].where}}
	}
	seen, last := map[int]bool{}, -1
	for _, p := range s.parts {
		i, ok := place(c, a, p, seen)
		if !ok {
			t, known := tokenOf(p)
			joined := known && c.wire.single && t.Nonce != s.Nonce             // the message has several answers
			blank := !known && p.text != "" && strings.TrimSpace(p.text) == "" // for a call of another model; what is missing is lost
			if !joined && !blank && slices.Contains([]string{"reasoning", "redacted", "compaction", "unknown", "server"}, p.kind) {
				list = append(list, breach{kind: "altered", at: p.where, name: p.kind})
			}
			continue
		}
		if i < last {
			list = append(list, breach{kind: "reordered", at: p.where, name: p.kind})
		}
		last = max(i, last)
		form := c.wire.form(c, a, i)
		seen[i] = seen[i] || form == nil || p.token != "" || p.kind != "call" && p.kind != "text"
		if form != nil && seen[i] && !unchanged(p, form) && (!c.wire.single || !within(p, form)) {
			list = append(list, breach{kind: "altered", at: p.where, name: a.items[i].Kind})
		}
		if c.wire.name == "responses" && c.server.Phases && (a.items[i].Kind == "text" || a.items[i].Kind == "commentary") && p.name != phaseOf(a.items[i]) {
			list = append(list, breach{kind: "phase", at: p.where, name: a.items[i].Kind, value: p.name})
		}
	}
	for i, item := range a.items {
		if !seen[i] && c.wire.form(c, a, i) != nil && !c.isContinued(s, item) {
			list = append(list, breach{kind: "lost", at: s.parts[0].where, name: item.Kind, value: a.ref(i)})
		}
	}
	return list
}

// isContinued reports whether an item is a text that came back joined with that of another answer, which it continued
// at the token limit. What came with it belongs to the text as it was.
func (c *conversation) isContinued(s sent, it Item) bool {
	text := strings.TrimSpace(it.Text)
	return it.Kind == "text" && text != "" && slices.ContainsFunc(s.parts, func(p part) bool {
		before, _, found := strings.Cut(p.text, text)
		r, other := findRef(before, c.maker(), c.scenario.Name)
		return p.kind == "text" && found && other && r.Nonce != s.Nonce
	})
}

// changes returns how many items came back that must not change, and what did not come back as it was sent.
func (c *conversation) changes() (returned int, list []Change) {
	for _, b := range native(c, Check{}) {
		list = append(list, Change{Kind: b.kind, Item: b.name + " of " + b.value, At: b.at})
	}
	turn := c.turnStart()
	for _, s := range c.answers(0) {
		if a, ok := c.reissue(s.ref, s.token); ok {
			returned += a.opaque(c)
		}
		for _, b := range c.compare(s) {
			list = append(list, Change{Kind: b.kind, Item: b.name + " " + b.value, At: b.at, Earlier: s.from < turn})
			if b.kind == "lost" {
				returned--
			}
		}
	}
	return returned, list
}

// opaque counts the items of an answer that must come back unchanged.
func (a answer) opaque(c *conversation) (n int) {
	for i := range a.items {
		if c.wire.form(c, a, i) != nil {
			n++
		}
	}
	return n
}

// phaseOf is the phase of a message.
func phaseOf(i Item) string {
	if i.Kind == "commentary" {
		return "commentary"
	}
	return "final_answer"
}

// place returns the index of the item that a part was sent as.
func place(c *conversation, a answer, p part, seen map[int]bool) (int, bool) {
	if r, ok := c.identify(p); ok && r.Nonce == a.Nonce && r.Item < len(a.items) {
		return r.Item, true
	}
	for i, item := range a.items {
		if !seen[i] && (item.Kind == "text" || item.Kind == "commentary") && (p.kind == "text" || p.kind == "commentary") && strings.TrimSpace(item.Text) == strings.TrimSpace(p.text) {
			return i, true
		}
	}
	return 0, false
}

// unchanged reports whether a part has what must come back. An id may be left out.
func unchanged(p part, form object) bool {
	sent := node{}
	if parsed, err := parseNode(encode(form)); err == nil {
		sent = parsed
	}
	for name, want := range sent.fields() {
		got := p.json.at(name)
		if !got.exists() && (name == "id" || name == "status") {
			continue
		}
		if withoutClosed(got).canonical() != withoutClosed(want).canonical() {
			return false
		}
	}
	return true
}

// within reports whether a part has the texts that must come back within longer ones: a message has the reasoning of all
// answers that it was joined from.
func within(p part, form object) bool {
	for name, want := range form {
		text, ok := want.(string)
		if !ok || !strings.Contains(p.json.at(name).text(), text) {
			return false
		}
	}
	return true
}

// withoutClosed returns a thinking part of Mistral without the mark that it is complete, which streams do not have.
func withoutClosed(n node) node { return without(n, "closed") }

// without returns an object without a member.
func without(n node, name string) node {
	members, ok := n.value.(object)
	if !ok {
		return n
	}
	out := maps.Clone(members)
	delete(out, name)
	return node{out}
}

// native: nothing comes back to a server that another one has issued.
func native(c *conversation, p Check) (list []breach) {
	for _, at := range c.parts {
		for text := range at.json.strings() {
			for _, t := range findTokens(text) {
				if t.Origin != c.origin {
					list = append(list, breach{kind: "foreign", at: at.where, name: at.kind, value: t.Origin})
				}
			}
		}
	}
	return list
}

// bound: reasoning comes back to the model that made it, after the same conversation.
func bound(c *conversation, _ Check) (list []breach) {
	drop := c.body.at("thinking.block_binding.prefix_mismatch_behavior").text() == "drop_block"
	for _, run := range c.runs(0) {
		start, former := run.from, ""
		for i := run.from; i < run.to; i++ {
			p := c.parts[i]
			if p.kind != "reasoning" && p.kind != "redacted" {
				continue
			}
			t, ok := parseToken(p.token)
			if ok && former != "" && t.Nonce != former {
				start = i
			}
			former = t.Nonce
			var reason string
			switch {
			case !ok:
				continue // another rule
			case t.Model != c.model:
				reason = "model_binding_mismatch"
			case t.Origin != c.origin:
				reason = "organization_binding_mismatch"
			case t.Prefix != c.prefix(start):
				reason = "prefix_binding_mismatch"
			default:
				continue
			}
			if drop {
				c.dropped = append(c.dropped, object{"type": "thinking_dropped", "path": p.where, "reason": reason})
				continue
			}
			list = append(list, breach{kind: "prefix", at: p.where, name: p.kind, value: reason})
		}
	}
	return list
}

// thinkingFirst: answers of the current turn begin with reasoning.
func thinkingFirst(c *conversation, _ Check) (list []breach) {
	for _, r := range c.runs(c.turnStart()) {
		if p := c.parts[r.from]; p.kind != "reasoning" && p.kind != "redacted" {
			list = append(list, breach{at: p.where, name: p.json.at("type").text()})
		}
	}
	return list
}

// callHas: messages with calls have a text in a field.
func callHas(c *conversation, p Check) (list []breach) {
	from := 0
	if p.Scope == "turn" {
		from = c.turnStart()
	}
	for _, r := range c.runs(from) {
		calls, reasoning := false, false
		for _, part := range c.parts[r.from:r.to] {
			calls = calls || part.kind == "call"
			reasoning = reasoning || part.kind == "reasoning" && slices.Contains(p.Fields, part.name) && part.text != ""
		}
		if calls && !reasoning {
			list = append(list, breach{kind: "lost", at: c.parts[r.from].where})
		}
	}
	return list
}

// sentinels are the documented signatures for calls of other models.
var sentinels = [...]string{"skip_thought_signature_validator", "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=", "context_engineering_is_the_way_to_go", "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv"}

// signedCalls: the first call of each answer of the current turn has a signature of this server, or a sentinel.
func signedCalls(c *conversation, p Check) (list []breach) {
	for _, r := range c.runs(c.turnStart()) {
		first := true
		for i := r.from; i < r.to; i++ {
			part := c.parts[i]
			if part.kind != "call" {
				continue
			}
			t, ok := parseToken(part.token)
			b := breach{at: part.where, name: part.name}
			switch {
			case part.token == "" && first:
				b.kind = "missing"
			case part.token != "" && !slices.Contains(sentinels[:], part.token) && (!ok || t.Origin != c.origin):
				b.kind = "foreign"
			}
			if slices.Contains(p.Breaches, b.kind) {
				list = append(list, b)
			}
			first = false
		}
	}
	return list
}
