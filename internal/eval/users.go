package eval

import (
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/model/mock"
	"github.com/qtype-dev/qtype/internal/tool/mockstate"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// User is a simulated user that is checked.
type User struct {
	Declared *spec.User
	Model    *spec.Model      // that plays the user; nil for one with rules
	Script   model.Chat       // answers by the rules; nil for a user with a model
	State    mockstate.Tables // of the file, with those of the user
	Attack   *Attack          // nil for a user who attacks nothing
}

// Talk is how a flow talks with users.
type Talk struct {
	Message string         // the id of the input that is what the user says
	Answer  *spec.Variable // the output that is what the user reads
}

// users checks the simulated users.
func (c *checker) users(declared *spec.Evaluation) {
	e := c.evaluation
	if len(declared.Users) == 0 {
		if _, ok := declared.Position().Lookup("state"); ok && declared.Attacks == nil && declared.Position().Complete("users") {
			c.list.Add(ruleInvalid.At(spanOf(declared, "state"), "the evaluation has no users whose conversations could change the state"))
		}
		return
	}
	switch _, data := declared.Position().Lookup("data"); {
	case data:
		c.list.Add(ruleInvalid.At(spanOf(declared, "data"), "the evaluation has users and data").WithHint("each user is a row: use one of them"))
	case c.request.Data != "":
		c.list.Add(ruleInvalid.At(spanOf(declared, "users"), "the evaluation has users, and so no data: leave out --data"))
	}
	e.Talk = c.talk(declared)
	seen := map[string]bool{}
	for _, u := range declared.Users {
		if u == nil || u.ID == "" {
			continue // reported already
		}
		if seen[u.ID] {
			c.list.Add(ruleUnknown.At(spanOf(u, "id"), "duplicate user %q", u.ID))
		}
		seen[u.ID] = true
		if u.MustPass && declared.Optimize == nil {
			c.list.Add(ruleInvalid.At(spanOf(u, "must_pass"), "must_pass is for optimizations, and the evaluation has none").WithHint("remove it, or add optimize"))
		}
		made := &User{Declared: u, State: maps.Clone(declared.State)}
		if made.State == nil {
			made.State = mockstate.Tables{}
		}
		maps.Copy(made.State, u.State)
		c.player(made)
		c.userInputs(u)
		if u.Checks != nil {
			c.list = append(c.list, apptest.CheckChecks(c.app, e.Flow, u.Checks, declared.Tools, made.State)...)
		}
		e.Users = append(e.Users, made)
	}
}

// talk finds the input and the output of the flow that are messages.
func (c *checker) talk(declared *spec.Evaluation) *Talk {
	flow, place := c.evaluation.Flow, spanOf(declared, "users")
	if declared.Attacks != nil {
		place = spanOf(declared, "attacks")
	}
	isMessage := func(v *spec.Variable) bool { return v.Type.Is("ChatMessage") || v.Type.Is("text") }
	t := &Talk{}
	for _, ref := range flow.Inputs {
		if v := ref.To; isMessage(v) && (t.Message == "" || v.Type.Is("ChatMessage") && !messageInput(flow, t.Message)) {
			t.Message = v.ID
		}
	}
	for _, ref := range flow.Outputs {
		if v := ref.To; isMessage(v) && (t.Answer == nil || v.Type.Is("ChatMessage") && !t.Answer.Type.Is("ChatMessage")) {
			t.Answer = v
		}
	}
	switch {
	case t.Message == "":
		c.list.Add(ruleInvalid.At(place, "flow %s has no input for what users say", flow.ID).WithHint("users talk with a flow that has an input and an output of type ChatMessage or text"))
	case t.Answer == nil && declared.Attacks == nil:
		c.list.Add(ruleInvalid.At(place, "flow %s has no output that users could read", flow.ID).WithHint("users talk with a flow that has an input and an output of type ChatMessage or text"))
	}
	return t
}

// messageInput reports whether an input is a ChatMessage.
func messageInput(flow *spec.Flow, id string) bool {
	return slices.ContainsFunc(flow.Inputs, func(r spec.Ref[*spec.Variable]) bool { return r.To.ID == id && r.To.Type.Is("ChatMessage") })
}

// player checks who plays a user.
func (c *checker) player(u *User) {
	d := u.Declared
	if !d.Position().Complete("model", "rules", "goal") {
		return // reported already
	}
	_, scripted := d.Position().Lookup("rules")
	switch {
	case scripted == (d.Model != ""):
		c.list.Add(ruleInvalid.At(spanOf(d, "id"), "user %s needs a model or rules", d.ID).WithHint("set one of them"))
	case scripted && len(d.Rules) == 0:
		c.list.Add(ruleInvalid.At(spanOf(d, "rules"), "user %s has no rules", d.ID).WithHint("write a list of rules, or model: with who plays the user"))
	case scripted:
		var err error
		if u.Script, err = mock.New(&spec.Model{ID: d.ID, Provider: "mock", Rules: apptest.NonNil(d.Rules)}, mock.Options{}); err != nil {
			_, why, _ := strings.Cut(err.Error(), ": ")
			c.list.Add(ruleInvalid.At(spanOf(d, "rules"), "%s", why))
		}
	default:
		found, err := ModelOf(c.app, d.Model)
		chat, isChat := found.(*spec.Model)
		u.Model = chat
		switch {
		case err != nil:
			c.list.Add(ruleUnknown.At(spanOf(d, "model"), "%s", err))
		case !isChat:
			c.list.Add(ruleInvalid.At(spanOf(d, "model"), "model %s is not a chat model", d.Model))
		case d.Goal == "":
			c.list.Add(ruleInvalid.At(spanOf(d, "id"), "user %s needs a goal", d.ID).WithHint("write goal: with what the user wants"))
		}
	}
}

// userInputs checks the inputs of the flow that a user does not say.
func (c *checker) userInputs(u *spec.User) {
	flow, message := c.evaluation.Flow, c.evaluation.Talk.Message
	var ids []string
	for _, ref := range flow.Inputs {
		v := ref.To
		if v.ID == message {
			continue
		}
		ids = append(ids, v.ID)
		given, ok := u.Inputs[v.ID]
		switch {
		case !ok && !v.IsOptional() && u.Position().Complete("inputs"):
			c.list.Add(ruleInvalid.At(spanOf(u, "id"), "user %s lacks the input %s (%s) of flow %s", u.ID, v.ID, v.Type, flow.ID).WithHint("add it under inputs"))
		case ok && given != nil && v.Type.IsPrimitive():
			if _, err := value.Coerce(v.Type, given); err != nil {
				c.list.Add(ruleInvalid.At(u.Position().Field("inputs").Field(v.ID).Span(), "input %s: %s", v.ID, err))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.Inputs)) {
		switch {
		case name == message:
			c.list.Add(ruleInvalid.At(u.Position().Field("inputs").Field(name).Key, "%s is what the user says", name).WithHint("opening is the first message"))
		case !slices.Contains(ids, name):
			c.unknown(u.Position().Field("inputs").Field(name).Key, "input of flow "+flow.ID, name, ids)
		}
	}
}
