package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// allowRules returns the rules of who may call a flow, and decide about calls of tools, on a server.
func allowRules() []rule { return []rule{malformedAllow(), neverAllowed(), malformedDecider()} }

func malformedAllow() rule {
	return rule{code: "QT490", title: "invalid entry of allow",
		doc: "An entry of `allow` is the name of an API key, `user:NAME` for a user of the OpenID provider, or `role:NAME` for everyone with a role. " +
			"Entries are complete names: there are no patterns. Remove `allow` if every caller may call the flow.",
		sample: sample{in: "name: text", out: "name: text", flow: "allow: [ci, ⟦ada@example.com│user:ada@example.com⟧]",
			steps: "- {type: Echo, id: pass, inputs: [name], outputs: [name]}"},
		check: on(func(p *ruleContext, f *spec.Flow) {
			at := f.Position().Field("allow")
			for i, entry := range f.Allow {
				if err := spec.CheckAllow(entry); err != nil {
					p.list.Add(p.reportAt(at.Index(i).Span(), "the flow %q has an invalid entry of allow: %s", f.ID, err).
						WithHint("write the name of an API key, user:NAME or role:NAME"))
				}
			}
		})}
}

func neverAllowed() rule {
	return rule{code: "QT491", warning: true, title: "flow that no caller may call",
		doc: "A flow with an empty list `allow` cannot be called on a server, only by other flows and with `qtype run`. " +
			"A repeated entry has no effect. List who may call the flow, or remove `allow` if every caller may.",
		sample: sample{in: "name: text", out: "name: text", flow: "allow: [⟦│ci⟧]",
			steps: "- {type: Echo, id: pass, inputs: [name], outputs: [name]}"},
		check: on(func(p *ruleContext, f *spec.Flow) {
			at, written := f.Position().Lookup("allow")
			if !written || !f.Position().Complete("allow") {
				return
			}
			if len(f.Allow) == 0 {
				p.report(at.Key, "the list allow of flow %q is empty: no caller of a server may call the flow", f.ID)
			}
			for i, entry := range f.Allow {
				if slices.Contains(f.Allow[:i], entry) {
					p.report(at.Index(i).Span(), "the entry %q of allow can never match: it is already in the list", entry)
				}
			}
		})}
}

func malformedDecider() rule {
	return rule{code: "QT498", title: "invalid entry of by",
		doc: "Who decides about the calls of a tool is `caller`, who has started the run, or `role:NAME`, everyone with a role. " +
			"Remove `by` if the caller decides. Two entries of approve cannot name different people for one tool.",
		sample: sample{head: sampleModel + `
tools:
  - {type: ClientTool, id: pay, name: pay, description: Pays}`,
			in: "question: ChatMessage", out: "answer: ChatMessage",
			steps: "- {type: Agent, id: help, model: writer, tools: [pay], approve: [{tool: pay, by: [⟦support│role:support⟧]}], inputs: [question], outputs: [answer]}"},
		check: on(func(p *ruleContext, s *spec.Agent) {
			for n, a := range s.Approve {
				if slices.ContainsFunc(s.Approve[:n], func(b *spec.Approval) bool { return b.Tool.ID == a.Tool.ID && !slices.Equal(a.By, b.By) }) {
					p.list.Add(p.reportAt(a.Tool.Span, "agent %q names two times who decides about the calls of the tool %q", s.ID, a.Tool.ID).
						WithHint("keep one of the entries"))
				}
				if at, written := a.Position().Lookup("by"); written && len(a.By) == 0 && a.Position().Complete("by") {
					p.list.Add(p.reportAt(at.Key, "agent %q: nobody may decide about the calls of the tool %q", s.ID, a.Tool.ID).
						WithHint("name a role, or remove by if the caller decides"))
				}
				for i, entry := range a.By {
					if err := spec.CheckDecider(entry); err != nil {
						p.list.Add(p.reportAt(a.Position().Field("by").Index(i).Span(), "agent %q: %s", s.ID, err).
							WithHint("write caller, or role: and the name of a role"))
					}
				}
			}
		})}
}
