package validate

import (
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

func authRules() []rule { return []rule{unfitAuth(), keyNotSent(), idlePlace()} }

// credentials are the kinds of auth that somebody can use; none means that auth has no effect.
type credentials []string

func unfitAuth() rule {
	return rule{code: "QT914", warning: true, title: "credentials that cannot be used here",
		doc: "Each kind of model, tool and store takes certain kinds of credentials: openai an API key, Bedrock an AWS identity, an APITool anything but the identities of clouds.",
		sample: sample{text: `
id: example
auths:
  - ⟦{type: aws, id: account, region: eu-west-1}│{type: api_key, id: account, api_key: "${OPENAI_API_KEY:-}"}⟧
models:
  - {type: Model, id: writer, provider: openai, auth: account}
`},
		check: on(func(p *ruleContext, e spec.Entity) {
			user := an(spec.TypeName(e))
			types, ok := spec.AcceptedAuth(e)
			if m, isModel := e.(spec.ModelEntity); isModel {
				var row spec.Provider
				row, ok = spec.LookupProvider(m.Base().Provider)
				user, types = "provider "+row.Name, row.Auths
			}
			for _, auth := range spec.Refs[spec.Auth](spec.UsesOf(e), spec.RoleAuth) {
				if ok {
					p.suits(auth, user, types)
				}
			}
		})}
}

// suits reports an auth that its user cannot use.
func (p *ruleContext) suits(auth *spec.Ref[spec.Auth], user string, takes credentials) {
	if auth.To == nil || slices.Contains(takes, spec.TypeName(auth.To)) {
		return
	}
	if len(takes) == 0 {
		p.report(auth.Span, "%s takes no auth; %q has no effect", user, auth.ID)
		return
	}
	p.report(auth.Span, "%s takes an auth of type %s; %q is of type %s", user, strings.Join(takes, " or "), auth.ID, spec.TypeName(auth.To))
}

func keyNotSent() rule {
	return rule{code: "QT480", title: "credentials that cannot be sent",
		doc: "A key goes into one header or one query parameter, a header's name has no blanks, and tokens are asked for at the address of a web server.",
		sample: sample{text: `
id: example
auths:
  - {type: api_key, id: weather_key, api_key: "${WEATHER_KEY:-}", header: X-Weather-Key⟦, query: key⟧}
tools:
  - type: APITool
    id: weather
    name: weather
    description: The weather of a place
    endpoint: "https://weather.example/now"
    auth: weather_key
    outputs: [{id: report, type: text}]
`},
		check: on(func(p *ruleContext, a spec.Auth) {
			switch a := a.(type) {
			case *spec.APIKeyAuth:
				if a.Header != "" && a.Query != "" {
					p.list.Add(p.reportAt(fieldKey(a, "query"), "the key %q is sent in a header or in the query, not in both", a.ID).
						WithRelated(fieldKey(a, "header"), "the header"))
				}
				if isDecided(a.Header) && a.Header != "" && !httpguts.ValidHeaderFieldName(a.Header) {
					p.report(placeOf(a, "header"), "%q cannot be the name of a header", a.Header)
				}
			case *spec.OAuth2Auth:
				if u, err := url.Parse(a.TokenURL); isDecided(a.TokenURL) && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
					p.list.Add(p.reportAt(placeOf(a, "token_url"), "tokens cannot be asked for at %q", a.TokenURL).
						WithHint("give an address that begins with https://").WithSeverity(diag.Warning)) // QType takes any text
				}
			}
		})}
}

// isDecided tells whether a text holds no variable that has no value yet.
func isDecided(text string) bool { return !strings.Contains(text, "${") }

func idlePlace() rule {
	return rule{code: "QT481", warning: true, title: "a key's header or query that has no effect",
		doc: "How a model's server wants the key is part of its provider's protocol. A header or query of the key counts for tools.",
		sample: sample{text: `
id: example
auths:
  - {type: api_key, id: account, api_key: "${OPENAI_API_KEY:-}"⟦, header: X-My-Key⟧}
models:
  - {type: Model, id: writer, provider: openai, auth: account}
`},
		check: on(func(p *ruleContext, m spec.ModelEntity) {
			key, ok := m.Base().Auth.To.(*spec.APIKeyAuth)
			if !ok {
				return
			}
			for _, name := range []string{"header", "query"} {
				if field, written := key.Place().Lookup(name); written {
					p.list.Add(p.reportAt(m.Base().Auth.Span, "provider %s has its own way to send a key; the %s of %q has no effect", m.Base().Provider, name, key.ID).
						WithRelated(field.Key, "written here"))
				}
			}
		})}
}
