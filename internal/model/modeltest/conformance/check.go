package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// check returns how a request breaks a rule; nothing if it does not.
type check func(c *conversation, p Check) []breach

// checks is the closed set of functions that rules name.
func checks() map[string]check {
	return map[string]check{
		"absent":             absent,
		"present":            present,
		"one_of":             oneOf,
		"none_of":            noneOf,
		"not_together":       notTogether,
		"at_most":            atMost,
		"at_least":           atLeast,
		"is":                 is,
		"known":              known,
		"never":              func(*conversation, Check) []breach { return []breach{{}} },
		"header":             header,
		"last_from_user":     lastFromUser,
		"results":            results,
		"result_order":       resultOrder,
		"alternate":          alternate,
		"carried":            carried,
		"native":             native,
		"bound":              bound,
		"thinking_first":     thinkingFirst,
		"call_has":           callHas,
		"signed_calls":       signedCalls,
		"closed_objects":     closedObjects,
		"no_recursion":       noRecursion,
		"optional_fields":    optionalFields,
		"media_with_results": mediaWithResults,
		"call_ids":           callIDs,
		"not_after":          notAfter,
		"keeps_tools":        keepsTools,
	}
}

// absent: the fields are not sent, or have one of the values.
func absent(c *conversation, p Check) (list []breach) {
	for _, field := range p.Fields {
		for at, v := range c.body.all(field) {
			if !slices.Contains(p.Values, v.text()) || v.text() == "" {
				list = append(list, breach{at: at, field: field, value: v.text(), name: field[strings.LastIndexByte(field, '.')+1:]})
			}
		}
	}
	return list
}

// present: the fields are sent.
func present(c *conversation, p Check) (list []breach) {
	for _, field := range p.Fields {
		if !c.body.at(field).exists() {
			list = append(list, breach{at: field, field: field})
		}
	}
	return list
}

// oneOf: a field that is sent has one of the values.
func oneOf(c *conversation, p Check) (list []breach) {
	for _, field := range p.Fields {
		for at, v := range c.body.all(field) {
			if !slices.Contains(p.Values, v.text()) {
				list = append(list, breach{at: at, field: field, value: v.text()})
			}
		}
	}
	return list
}

// noneOf: the fields have none of the values.
func noneOf(c *conversation, p Check) (list []breach) {
	for _, field := range p.Fields {
		for at, v := range c.body.all(field) {
			if slices.Contains(p.Values, v.text()) {
				list = append(list, breach{at: at, field: field, value: v.text()})
			}
		}
	}
	return list
}

// notTogether: not all of the fields are sent.
func notTogether(c *conversation, p Check) []breach {
	for _, field := range p.Fields {
		if !c.body.at(field).exists() {
			return nil
		}
	}
	return []breach{{at: p.Fields[0], field: p.Fields[0]}}
}

// atMost: numbers are within the limit.
func atMost(c *conversation, p Check) (list []breach) {
	for _, field := range p.Fields {
		for at, v := range c.body.all(field) {
			if n, ok := v.number(); ok && n > float64(p.Limit) {
				list = append(list, breach{at: at, field: field, value: v.text(), limit: p.Limit})
			}
		}
	}
	return list
}

// atLeast: numbers are not below the limit.
func atLeast(c *conversation, p Check) (list []breach) {
	for _, field := range p.Fields {
		for at, v := range c.body.all(field) {
			if n, ok := v.number(); ok && n < float64(p.Limit) {
				list = append(list, breach{at: at, field: field, value: v.text(), limit: p.Limit})
			}
		}
	}
	return list
}

// is: values have the JSON type: text or object.
func is(c *conversation, p Check) (list []breach) {
	for _, field := range p.Fields {
		for at, v := range c.body.all(field) {
			if slices.Contains(p.Values, "text") && !v.isText() || slices.Contains(p.Values, "object") && !v.isObject() {
				list = append(list, breach{at: at, field: field})
			}
		}
	}
	return list
}

// known: objects have no other members than these.
func known(c *conversation, p Check) (list []breach) {
	for _, field := range p.Fields {
		for at, v := range c.body.all(field) {
			for name := range v.fields() {
				if !slices.Contains(p.Values, name) {
					list = append(list, breach{at: at, field: name, name: name})
				}
			}
		}
	}
	return list
}

// header: a header has one of the values.
func header(c *conversation, p Check) []breach {
	got := c.header.Get(p.Fields[0])
	if slices.Contains(p.Values, got) {
		return nil
	}
	return []breach{{field: p.Fields[0], value: got}}
}

// lastFromUser: the conversation does not end with an answer, unless the answer was paused.
func lastFromUser(c *conversation, _ Check) []breach {
	if len(c.parts) == 0 {
		return nil
	}
	last := c.parts[len(c.parts)-1]
	if last.role != assistant {
		return nil
	}
	if r, ok := c.identify(last); ok {
		if a, ok := c.reissue(r, token{}); ok && a.Stop == "pause" {
			return nil
		}
	}
	return []breach{{at: last.where}}
}

// results: each call is followed by its result before the next answer or message of the user (missing), and each result
// follows its call (orphan).
func results(c *conversation, p Check) []breach {
	return slices.DeleteFunc(resultBreaches(c), func(b breach) bool { return p.Breaches != nil && !slices.Contains(p.Breaches, b.kind) })
}

func resultBreaches(c *conversation) (list []breach) {
	open := map[string]part{}
	var order []string
	unanswered := func() {
		for _, id := range order {
			if p, ok := open[id]; ok {
				list = append(list, breach{kind: "missing", at: p.where, name: p.name, value: id})
			}
		}
		clear(open)
		order = nil
	}
	former := ""
	for _, p := range c.parts {
		switch {
		case p.kind == "call":
			if former != assistant {
				unanswered()
			}
			open[p.id], order = p, append(order, p.id)
		case p.kind == "result" && p.id != "":
			if _, ok := open[p.id]; !ok {
				list = append(list, breach{kind: "orphan", at: p.where, value: p.id})
			}
			delete(open, p.id)
		case p.kind == "result": // by its place
			if len(order) > 0 {
				delete(open, order[0])
				order = order[1:]
			}
		case p.role == user, p.role == assistant && former == tool:
			unanswered()
		}
		former = p.role
	}
	unanswered()
	return list
}

// resultOrder: results have the order of their calls.
func resultOrder(c *conversation, _ Check) []breach {
	at := map[string]int{}
	last := -1
	for i, p := range c.parts {
		switch p.kind {
		case "call":
			at[p.id], last = i, -1
		case "result":
			if at[p.id] < last {
				return []breach{{at: p.where, value: p.id}}
			}
			last = at[p.id]
		}
	}
	return nil
}

// alternate: messages of the user and of the assistant alternate in the list that the field names.
func alternate(c *conversation, p Check) []breach {
	former := ""
	for i, m := range c.body.at(p.Fields[0]).items() {
		role := m.at("role").text()
		if role == former && slices.Contains(p.Values, role) {
			return []breach{{at: fmt.Sprintf("%s.%d", p.Fields[0], i), value: role}}
		}
		former = role
	}
	return nil
}

// closedObjects: objects of a schema do not allow other properties.
func closedObjects(c *conversation, p Check) (list []breach) {
	eachSchema(c, p, func(at string, v node) {
		if v.at("type").text() == "object" && v.at("additionalProperties").text() != "false" {
			list = append(list, breach{at: at, field: at})
		}
	})
	return list
}

// noRecursion: no part of a schema refers to what contains it.
func noRecursion(c *conversation, p Check) (list []breach) {
	for _, field := range p.Fields {
		for at, root := range c.body.all(field) {
			if recursive(root, root, nil) {
				list = append(list, breach{at: at, field: at})
			}
		}
	}
	return list
}

// recursive reports whether a schema has a reference that leads back to itself.
func recursive(root, v node, open []string) bool {
	if to := v.at("$ref").text(); to != "" {
		if slices.Contains(open, to) {
			return true
		}
		path := strings.ReplaceAll(strings.Trim(strings.TrimPrefix(to, "#"), "/"), "/", ".")
		return recursive(root, root.at(path), append(open, to))
	}
	for name, child := range v.fields() {
		if name != "$defs" && name != "definitions" && recursive(root, child, open) {
			return true
		}
	}
	for _, child := range v.items() {
		if recursive(root, child, open) {
			return true
		}
	}
	return false
}

// optionalFields: the schemas of a request have at most the limit's number of properties that are not required.
func optionalFields(c *conversation, p Check) []breach {
	count := 0
	eachSchema(c, p, func(_ string, v node) {
		required := map[string]bool{}
		for _, name := range v.at("required").items() {
			required[name.text()] = true
		}
		for name := range v.at("properties").fields() {
			if !required[name] {
				count++
			}
		}
	})
	if count <= p.Limit {
		return nil
	}
	return []breach{{at: p.Fields[0], field: p.Fields[0], count: count, limit: p.Limit}}
}

// eachSchema calls visit for the schemas at the fields and all schemas within them.
func eachSchema(c *conversation, p Check, visit func(at string, v node)) {
	var walk func(at string, v node)
	walk = func(at string, v node) {
		if v.isObject() && (v.at("type").exists() || v.at("properties").exists()) {
			visit(at, v)
		}
		for name, child := range v.fields() {
			walk(at+"."+name, child)
		}
		for i, child := range v.items() {
			walk(fmt.Sprintf("%s.%d", at, i), child)
		}
	}
	for _, field := range p.Fields {
		for at, v := range c.body.all(field) {
			walk(at, v)
		}
	}
}

// mediaWithResults: no media follow results in a message.
func mediaWithResults(c *conversation, _ Check) (list []breach) {
	for _, p := range c.parts {
		if p.role == tool && p.kind == "media" {
			list = append(list, breach{at: p.where})
		}
	}
	return list
}

// callIDs: ids of calls and results have the limit's number of letters and digits.
func callIDs(c *conversation, p Check) (list []breach) {
	for _, part := range c.parts {
		if (part.kind == "call" || part.kind == "result") && (len(part.id) != p.Limit || strings.Trim(part.id, alphabet) != "") {
			list = append(list, breach{at: part.where, value: part.id})
		}
	}
	return list
}

// notAfter: a message with the second role does not follow one with the first.
func notAfter(c *conversation, p Check) (list []breach) {
	former := ""
	for _, part := range c.parts {
		if former == p.Values[0] && part.role == p.Values[1] {
			list = append(list, breach{at: part.where})
		}
		former = part.role
	}
	return list
}

// keepsTools: a request with calls in its turn has tools.
func keepsTools(c *conversation, _ Check) []breach {
	from := c.turnStart()
	i := slices.IndexFunc(c.parts[from:], func(p part) bool { return p.kind == "call" })
	if i < 0 || len(c.tools) > 0 {
		return nil
	}
	return []breach{{at: c.parts[from+i].where}}
}
