package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// applicationRules returns the rules of an application as a whole.
func applicationRules() []rule {
	return []rule{feedbackNeedsTelemetry(), secretsNeedManager(), secretManagerAuth(), secretInSecretManager()}
}

func feedbackNeedsTelemetry() rule {
	return rule{code: "QT301", check: on(func(p *ruleContext, f *spec.Flow) {
		if f.Feedback == nil || p.here.app == nil || mayHaveTelemetry(p.here.app) || mayHaveTelemetry(p.doc.Application) {
			return
		}
		for step := range f.Plan().All() {
			if step.Conversation() != nil {
				return
			}
		}
		p.list.Add(p.reportAt(placeOf(f, "feedback"), "the feedback of flow %q needs a memory or a telemetry sink", f.ID).
			WithHint("add telemetry: to the application %q", p.here.app.ID))
	})}
}

// mayHaveTelemetry reports whether an application has a telemetry sink, or one that
// could not be read. The application may be nil.
func mayHaveTelemetry(app *spec.Application) bool {
	return app != nil && (app.Telemetry != nil || !app.Position().Complete("telemetry"))
}

func secretsNeedManager() rule {
	return rule{code: "QT302", check: on(func(p *ruleContext, app *spec.Application) {
		if !p.here.root || app.SecretManager != nil {
			return
		}
		secrets := p.secretsInUse()
		if len(secrets) == 0 {
			return
		}
		// This is one error, even with several secrets.
		diagnostic := p.reportAt(secrets[0].Position().Span(), "the secret %q is used, but the application %q has no secret_manager", secrets[0].SecretName, app.ID)
		for _, more := range secrets[1:min(len(secrets), 4)] {
			diagnostic = diagnostic.WithRelated(more.Position().Span(), "another secret")
		}
		p.list.Add(diagnostic.WithHint("add secret_manager: to the application"))
	})}
}

// secretsInUse returns the secrets of the document and of the entities that it uses
// from its references.
func (p *checker) secretsInUse() []*spec.SecretReference {
	var secrets []*spec.SecretReference
	for _, v := range p.nodes {
		if s, ok := v.node.(*spec.SecretReference); ok && (v.at.root || p.used[v.at.owner] || p.invoked(v.at.flow)) {
			secrets = append(secrets, s)
		}
	}
	slices.SortStableFunc(secrets, func(a, b *spec.SecretReference) int {
		return source.Compare(a.Position().Span(), b.Position().Span())
	})
	return secrets
}

// invoked reports whether a step or tool refers to a flow.
func (p *checker) invoked(f *spec.Flow) bool { return f != nil && p.used[f] }

func secretManagerAuth() rule {
	return rule{code: "QT303", check: on(func(p *ruleContext, m *spec.AWSSecretManager) {
		auth := m.Auth.To
		if _, ok := auth.(*spec.AWSAuth); auth != nil && !ok {
			p.list.Add(p.reportAt(m.Auth.Span, "the secret manager %q needs an auth of type aws; %q is of type %s", m.ID, m.Auth.ID, spec.TypeName(auth)).
				WithRelated(idPlace(auth), an(kindNoun(auth))+" declared here"))
		}
	})}
}

func secretInSecretManager() rule {
	return rule{code: "QT410", warning: true, check: on(func(p *ruleContext, m spec.SecretManager) {
		identity, _ := m.Identity().(spec.Entity)
		for _, v := range p.nodes {
			if s, ok := v.node.(*spec.SecretReference); ok && v.at.owner != nil && (v.at.owner == identity || v.at.owner == m.(spec.Entity)) {
				p.report(s.Position().Span(), "the credentials of the secret manager %q cannot be secrets that it manages", m.EntityID())
			}
		}
	})}
}

// allowRules returns the rules of who may call a flow, and decide about calls of tools, on a server.
func allowRules() []rule { return []rule{malformedAllow(), neverAllowed(), malformedDecider()} }

func malformedAllow() rule {
	return rule{code: "QT490", check: on(func(p *ruleContext, f *spec.Flow) {
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
	return rule{code: "QT491", warning: true, check: on(func(p *ruleContext, f *spec.Flow) {
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
	return rule{code: "QT498", check: on(func(p *ruleContext, s *spec.Agent) {
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

// availableRules returns the rule about parts of the language that this program does not run.
func availableRules() []rule { return []rule{notAvailable()} }

// notAvailable has no examples: the distribution runs the whole language, and examples are checked for it.
func notAvailable() rule {
	return rule{code: "QT482", check: on(func(p *ruleContext, n spec.Node) {
		missing := spec.CheckAvailable(n)
		m, isModel := n.(spec.ModelEntity)
		switch {
		case isModel && !isProvider(m.Base()): // the loader reports an unknown provider
		case missing != nil:
			p.report(placeOf(n, missing.Key), "%s", missing)
		case p.have != nil:
			p.checkParts(n)
		}
	})}
}

func isProvider(m *spec.Model) bool {
	_, known := m.ProviderRow()
	return known
}

// checkParts reports a part that a node needs and the program does not have.
func (p *ruleContext) checkParts(n spec.Node) {
	switch n := n.(type) {
	case spec.ModelEntity:
		p.need(n, parts.Provider, n.Base().Provider, "provider")
		if b := n.Base().Batch; b != nil {
			p.needAddress(n, b.Bucket, "batch")
		}
	case *spec.Store:
		if _, known := p.doc.Language.StoreType(n.Type); known { // the loader reports an unknown type
			p.need(n, parts.Store, n.Type, "type")
		}
	case spec.Index:
		if row, err := spec.StoreOf(n); err == nil {
			p.need(n, parts.Index, row.Name, "module", "store")
		}
	case spec.DatabaseStep:
		if u, err := sqlquery.ParseURL(n.Database()); err == nil {
			p.need(n, parts.Database, string(u.Dialect), "connection")
		}
	case spec.FileStep:
		path, base, _ := n.FilePath()
		p.needAddress(n, path.URI, "path")
		p.need(n, parts.Records, spec.FileFormat(path.URI), "path")
		if trust.IsAddress(base) {
			p.needAddress(n, base, "base")
		}
	case spec.ReaderStep:
		p.need(n, parts.Files, n.Reader().Bucket, "reader_module")
	case *spec.Telemetry:
		p.need(n, parts.Telemetry, "otlp", "provider", "endpoint")
	case spec.IdentityNode:
		p.need(n, parts.Identity, n.CloudIdentity(), "method", "type")
	}
}

// needAddress reports an address of a service that the program does not have.
func (p *ruleContext) needAddress(n spec.Node, address, key string) {
	p.need(n, parts.Files, remotefs.Service(address), key)
}

// need reports a part at the first of keys that the node has; an empty name is none.
func (p *ruleContext) need(n spec.Node, kind parts.Kind, name string, keys ...string) {
	if name == "" {
		return
	}
	if missing := p.have.Check(kind, name); missing != nil {
		p.report(placeOf(n, keys...), "%s", missing)
	}
}
