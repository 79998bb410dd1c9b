package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// applicationRules are about the application as a whole (semantics.md 4).
func applicationRules() []rule {
	return []rule{feedbackNeedsTelemetry(), secretsNeedManager(), secretManagerAuth(), secretInSecretManager()}
}

func feedbackNeedsTelemetry() rule {
	return rule{code: "QT301", title: "feedback without telemetry",
		doc: "What users say about an answer is kept with the answer's trace, so an application with feedback needs a telemetry sink.",
		sample: sample{head: "⟦│telemetry: {id: traces, endpoint: \"http://localhost:6006/v1/traces\"}⟧",
			in: "name: text", out: "name: text", flow: "feedback: {type: thumbs}",
			steps: "- {type: Echo, id: pass, inputs: [name], outputs: [name]}"},
		check: on(func(p *ruleContext, f *spec.Flow) {
			app := p.doc.Application
			if p.here.app == nil || !p.here.app.Place().Complete("telemetry") || app != nil && !app.Place().Complete("telemetry") {
				return
			}
			if f.Feedback == nil || p.here.app.Telemetry != nil || app != nil && app.Telemetry != nil {
				return
			}
			p.list.Add(p.reportAt(placeOf(f, "feedback"), "the feedback of flow %q needs a telemetry sink", f.ID).
				WithHint("add telemetry: to the application %q", p.here.app.ID))
		})}
}

func secretsNeedManager() rule {
	return rule{code: "QT302", title: "secrets without a secret manager",
		doc: "A {secret_name: …} is asked of the application's secret_manager. Only what the application uses counts: a library of credentials under references may name secrets that nobody needs here.",
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
			// One manager is missing, however many secrets ask for it.
			finding := p.reportAt(secrets[0].Place().Span(), "the secret %q is used, but the application %q has no secret_manager", secrets[0].SecretName, app.ID)
			for _, more := range secrets[1:min(len(secrets), 4)] {
				finding = finding.WithRelated(more.Place().Span(), "another secret")
			}
			p.list.Add(finding.WithHint("add secret_manager: to the application"))
		})}
}

// secretsInUse lists the secrets of the document itself and of what it uses of its references.
func (p *checker) secretsInUse() []*spec.SecretReference {
	var secrets []*spec.SecretReference
	for _, v := range p.nodes {
		if s, ok := v.node.(*spec.SecretReference); ok && (v.at.root || p.used[v.at.owner] || p.invoked(v.at.flow)) {
			secrets = append(secrets, s)
		}
	}
	slices.SortStableFunc(secrets, func(a, b *spec.SecretReference) int {
		return source.Compare(a.Place().Span(), b.Place().Span())
	})
	return secrets
}

// invoked tells whether something refers to a flow.
func (p *checker) invoked(f *spec.Flow) bool { return f != nil && p.used[f] }

func secretManagerAuth() rule {
	return rule{code: "QT303", title: "the secret manager's auth is not an AWS one",
		doc: "AWS Secrets Manager is asked with an AWS identity: an auth of type aws.",
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
					WithRelated(idPlace(auth), an(nounOf(auth))+" declared here"))
			}
		})}
}

func secretInSecretManager() rule {
	return rule{code: "QT410", warning: true, title: "the secret manager's own credentials are secrets",
		doc: "The secret manager would have to be asked for the credentials that it is asked with. Give them by ${VAR}, a profile or a role.",
		sample: sample{text: `
id: example
auths:
  - {type: aws, id: vault, access_key_id: AKIA, secret_access_key: ⟦{secret_name: own}│"${VAULT_KEY:-none}"⟧}
secret_manager: {type: aws_secret_manager, id: secrets, auth: vault}
`},
		check: on(func(p *ruleContext, m *spec.AWSSecretManager) {
			for _, v := range p.nodes {
				if s, ok := v.node.(*spec.SecretReference); ok && m.Auth.To != nil && v.at.owner == m.Auth.To.(spec.Entity) {
					p.report(s.Place().Span(), "the secret manager %q cannot be asked for its own credentials", m.ID)
				}
			}
		})}
}
