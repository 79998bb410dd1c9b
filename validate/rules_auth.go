package validate

import (
	"net/url"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

func authRules() []rule {
	return []rule{unsupportedAuth(), unsendableCredentials(), ignoredKeySetting(), unusableCredentials(), signInAnywhere()}
}

func unsupportedAuth() rule {
	return rule{code: "QT914", warning: true, check: on(func(p *ruleContext, e spec.Entity) {
		user := an(spec.TypeName(e))
		types, ok := spec.AcceptedAuth(e)
		if m, isModel := e.(spec.ModelEntity); isModel {
			var row spec.Provider
			row, ok = m.Base().ProviderRow()
			user, types = "provider "+row.Name, row.Auths
		}
		if chooser, isSelector := e.(spec.Selector); isSelector {
			if chosen, known := selectionOf(chooser); known && chosen.Auths != nil {
				user, types, ok = "the "+chosen.Noun+" "+chosen.Name, chosen.Auths, chosen.Known
			}
		}
		for _, auth := range spec.Refs[spec.Auth](spec.UsesOf(e), spec.RoleAuth) {
			if ok {
				p.checkAuthType(auth, user, types, e)
			}
		}
	})}
}

// checkAuthType reports an auth of a type that its user does not accept.
func (p *ruleContext) checkAuthType(auth *spec.Ref[spec.Auth], user string, accepted []string, owner spec.Entity) {
	if auth.To == nil || slices.Contains(accepted, spec.TypeName(auth.To)) {
		return
	}
	if len(accepted) == 0 {
		p.report(auth.Span, "%s takes no auth; %q has no effect", user, auth.ID)
		return
	}
	found := p.reportAt(auth.Span, "%s takes an auth of type %s; %q is of type %s", user, strings.Join(accepted, " or "), auth.ID, spec.TypeName(auth.To))
	if m, isModel := owner.(spec.ModelEntity); isModel && m.Base().AuthConflict() != "" {
		found = found.WithSeverity(diag.Error) // a run refuses it
	}
	p.list.Add(found)
}

func unsendableCredentials() rule {
	return rule{code: "QT480", check: on(func(p *ruleContext, a spec.Auth) {
		switch a := a.(type) {
		case *spec.APIKeyAuth:
			if a.Header != "" && a.Query != "" {
				p.list.Add(p.reportAt(fieldKey(a, "query"), "the key %q has both a header and a query", a.ID).
					WithRelated(fieldKey(a, "header"), "the header").WithHint("keep one of them"))
			}
			if isDecided(a.Header) && a.Header != "" && (!spec.IsHeaderName(a.Header) || spec.IsTransportHeader(a.Header)) {
				p.report(placeOf(a, "header"), "invalid header name %q", a.Header)
			}
		case *spec.OAuth2Auth:
			if u, err := url.Parse(a.TokenURL); a.TokenURL != "" && isDecided(a.TokenURL) && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
				p.list.Add(p.reportAt(placeOf(a, "token_url"), "invalid token_url %q", a.TokenURL).
					WithHint("use a URL that starts with https://").WithSeverity(diag.Warning)) // not an error: QType (Python) accepts any text
			}
		}
	})}
}

// unusableCredentials reports credentials that their user refuses, as far as the document
// alone decides that: those of the environment are checked by a run.
func unusableCredentials() rule {
	return rule{code: "QT483", check: on(func(p *ruleContext, e spec.Entity) {
		for _, ref := range spec.Refs[spec.Auth](spec.UsesOf(e), spec.RoleAuth) {
			if key, problem := credentialProblem(e, ref.To); problem != "" {
				p.list.Add(p.ifUsed(e, p.reportAt(placeOf(ref.To, key, "id"), "the auth %q %s", ref.ID, problem)).
					WithRelated(ref.Span, "used here"))
			}
		}
	})}
}

func signInAnywhere() rule {
	return rule{code: "QT487", check: on(func(p *ruleContext, a *spec.OAuth2LoginAuth) {
		if a.ClientID == "" && !a.ClientSecret.IsZero() && a.Position().Complete("client_id", "client_secret") {
			p.list.Add(p.reportAt(fieldKey(a, "client_secret"), "the auth %q has a client_secret without a client_id", a.ID).WithHint("add client_id, or remove client_secret"))
		}
		if a.ClientID == "" && a.Issuer != "" && a.Position().Complete("client_id", "issuer") {
			p.list.Add(p.reportAt(fieldKey(a, "issuer"), "the auth %q has an issuer without a client_id", a.ID).WithHint("add client_id, or remove issuer"))
		}
		if a.ClientID != "" && !a.ClientSecret.IsZero() && a.Issuer == "" && a.Position().Complete("issuer", "client_secret") {
			p.list.Add(p.reportAt(placeOf(a, "client_secret"), "the auth %q has a client_secret without an issuer", a.ID).WithHint("add issuer, the address of the authorization server that knows the client"))
		}
	})}
}

// credentialProblem returns the key of an auth that its user refuses, and what is wrong with it.
func credentialProblem(user spec.Entity, auth spec.Auth) (key, problem string) {
	key, secret, ok := spec.SentSecret(auth)
	if !ok || !auth.Position().Complete("host", key) {
		return "", ""
	}
	text := "key" // of a secret that a run knows: any valid one
	if secret.IsFixed() {
		text = secret.Reveal()
	}
	switch user := user.(type) {
	case *spec.APITool:
		return toolCredentialProblem(auth, user.Endpoint, key, text)
	case *spec.MCPTool:
		return toolCredentialProblem(auth, user.URL, key, text)
	case spec.ModelEntity:
		keyAuth, isKey := auth.(spec.KeyAuth)
		row, known := user.Base().ProviderRow()
		if !isKey || !known || len(row.Auths) == 0 || !isDecided(user.Base().BaseURL) {
			return "", ""
		}
		if _, host := keyAuth.ModelKey(); !isDecided(host) {
			return key, spec.KeyProblem(text)
		}
		return user.Base().KeyConflict(keyAuth, text)
	case spec.Index:
		return key, spec.KeyProblem(text)
	}
	return "", ""
}

// toolCredentialProblem is credentialProblem for a tool at an address.
func toolCredentialProblem(auth spec.Auth, address, key, text string) (place, problem string) {
	if apiKey, ok := auth.(*spec.APIKeyAuth); ok && spec.IsHTTPAddress(address) && isDecided(apiKey.Host+address) {
		if problem := apiKey.HostConflict(address); problem != "" {
			return "host", problem
		}
	}
	return key, spec.ToolKeyProblem(text)
}

// isDecided reports whether all variables of a text are replaced.
func isDecided(text string) bool { return !strings.Contains(text, "${") }

func ignoredKeySetting() rule {
	return rule{code: "QT481", warning: true, check: on(func(p *ruleContext, m spec.ModelEntity) {
		key, ok := m.Base().Auth.To.(*spec.APIKeyAuth)
		if !ok {
			return
		}
		for _, name := range []string{"header", "query"} {
			if field, written := key.Position().Lookup(name); written {
				p.list.Add(p.reportAt(m.Base().Auth.Span, "the %s of %q has no effect: the provider %s defines how the key is sent", name, key.ID, m.Base().Provider).
					WithRelated(field.Key, "written here"))
			}
		}
	})}
}
