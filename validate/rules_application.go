package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// applicationRules returns the rules of an application as a whole.
func applicationRules() []rule {
	return []rule{feedbackNeedsTelemetry(), secretsNeedManager(), secretManagerAuth(), secretInSecretManager()}
}

func feedbackNeedsTelemetry() rule {
	return rule{code: "QT301", title: "feedback without telemetry",
		doc: "Feedback is stored with the trace of the answer, so an application with feedback needs a telemetry sink.",
		sample: sample{head: "⟦│telemetry: {id: traces, endpoint: \"http://localhost:6006/v1/traces\"}⟧",
			in: "name: text", out: "name: text", flow: "feedback: {type: thumbs}",
			steps: "- {type: Echo, id: pass, inputs: [name], outputs: [name]}"},
		check: on(func(p *ruleContext, f *spec.Flow) {
			if f.Feedback == nil || p.here.app == nil || mayHaveTelemetry(p.here.app) || mayHaveTelemetry(p.doc.Application) {
				return
			}
			p.list.Add(p.reportAt(placeOf(f, "feedback"), "the feedback of flow %q needs a telemetry sink", f.ID).
				WithHint("add telemetry: to the application %q", p.here.app.ID))
		})}
}

// mayHaveTelemetry reports whether an application has a telemetry sink, or one that
// could not be read. The application may be nil.
func mayHaveTelemetry(app *spec.Application) bool {
	return app != nil && (app.Telemetry != nil || !app.Position().Complete("telemetry"))
}

func secretsNeedManager() rule {
	return rule{code: "QT302", title: "secrets without a secret manager",
		doc: "A {secret_name: …} is read from the application's secret_manager. Only secrets that the application uses count: documents under references can declare credentials that it does not use.",
		sample: sample{text: `
id: example
auths:
  - {type: aws, id: vault, region: eu-west-1}
  - {type: api_key, id: llm_key, api_key: {secret_name: llm}}
⟦│secret_manager: {type: aws_secret_manager, id: secrets, auth: vault}⟧
`},
		check: on(func(p *ruleContext, app *spec.Application) {
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
	return rule{code: "QT303", title: "secret manager without AWS credentials",
		doc: "AWS Secrets Manager requires AWS credentials: an auth of type aws.",
		sample: sample{text: `
id: example
auths:
  - ⟦{type: bearer_token, id: vault, token: "${VAULT_TOKEN:-}"}│{type: aws, id: vault, region: eu-west-1}⟧
secret_manager: {type: aws_secret_manager, id: secrets, auth: vault}
`},
		check: on(func(p *ruleContext, m *spec.AWSSecretManager) {
			auth := m.Auth.To
			if _, ok := auth.(*spec.AWSAuth); auth != nil && !ok {
				p.list.Add(p.reportAt(m.Auth.Span, "the secret manager %q needs an auth of type aws; %q is of type %s", m.ID, m.Auth.ID, spec.TypeName(auth)).
					WithRelated(idPlace(auth), an(kindNoun(auth))+" declared here"))
			}
		})}
}

func secretInSecretManager() rule {
	return rule{code: "QT410", warning: true, title: "secret manager whose credentials are secrets",
		doc: "The credentials of a secret manager cannot be read from the secret manager. Use ${VAR}, a profile or a role.",
		sample: sample{text: `
id: example
auths:
  - {type: aws, id: vault, access_key_id: AKIA, secret_access_key: ⟦{secret_name: vault_key}│"${VAULT_KEY:-none}"⟧}
secret_manager: {type: aws_secret_manager, id: secrets, auth: vault}
`},
		check: on(func(p *ruleContext, m spec.SecretManager) {
			identity, _ := m.Identity().(spec.Entity)
			for _, v := range p.nodes {
				if s, ok := v.node.(*spec.SecretReference); ok && v.at.owner != nil && (v.at.owner == identity || v.at.owner == m.(spec.Entity)) {
					p.report(s.Position().Span(), "the credentials of the secret manager %q cannot be secrets that it manages", m.EntityID())
				}
			}
		})}
}
