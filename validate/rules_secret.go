package validate

import (
	"net/url"
	"reflect"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// secretRules are about what everybody may read who may read the document.
func secretRules() []rule { return []rule{plaintextSecrets()} }

// onEntity makes a check of everything that has an id.
func onEntity() reflect.Type { return reflect.TypeFor[spec.Entity]() }

func plaintextSecrets() rule {
	return rule{code: "QT437", warning: true, title: "a secret that is written in clear",
		doc: "Who can read the document can read the secret, and so can everybody who sees its history. Write ${NAME} and set the environment variable, or name a secret of the secret manager: {secret_name: …}.",
		sample: sample{text: `
id: example
auths:
  - {type: api_key, id: account, api_key: ⟦sk-1234567890│"${OPENAI_API_KEY:-}"⟧}
`},
		check: check{wants: onEntity(), run: func(p *ruleContext, n spec.Node) {
			for _, s := range secretsOf(n) {
				p.list.Add(p.reportAt(s.at, "the %s of %s is written in clear", s.what, nameOf(n.(spec.Entity))).
					WithHint("write ${NAME} and set the environment variable"))
			}
		}}}
}

// plaintextSecret is a secret that the document itself holds.
type plaintextSecret struct {
	what string // the key
	at   source.Span
}

// secretsOf finds the secrets that a node holds in clear.
func secretsOf(n spec.Node) []plaintextSecret {
	var found []plaintextSecret
	add := func(key string, s spec.Secret) {
		if s.Literal() {
			found = append(found, plaintextSecret{key, placeOf(n, key)})
		}
	}
	switch n := n.(type) {
	case *spec.APIKeyAuth:
		add("api_key", n.APIKey)
	case *spec.BearerTokenAuth:
		add("token", n.Token)
	case *spec.BasicAuth:
		add("password", n.Password)
	case *spec.OAuth2Auth:
		add("client_secret", n.ClientSecret)
	case *spec.AWSAuth: // an access_key_id is a name, not a secret
		add("secret_access_key", n.SecretAccessKey)
		add("session_token", n.SessionToken)
	case *spec.Telemetry:
		add("endpoint", withPassword(n.Endpoint))
	case *spec.SQLSource:
		add("connection", withPassword(n.Connection))
	case *spec.Store:
		add("url", withPassword(n.URL))
		found = append(found, keysInClear(n.Encryption)...)
	case *spec.Memory:
		add("store", withPassword(n.Store.URL))
	case *spec.MCPTool:
		found = append(found, inMap(n, "env", n.Env)...)
	case *spec.CommandTool:
		found = append(found, inMap(n, "env", n.Env)...)
	case *spec.PythonFunctionTool:
		found = append(found, inMap(n, "env", n.Env)...)
	}
	return found
}

// keysInClear are the keys of a store's encryption that the document holds.
func keysInClear(e *spec.Encryption) []plaintextSecret {
	var found []plaintextSecret
	if e == nil {
		return nil
	}
	if e.Key.Literal() {
		found = append(found, plaintextSecret{"encryption key", placeOf(e, "key")})
	}
	for i, k := range e.OldKeys {
		if k.Literal() {
			found = append(found, plaintextSecret{"old encryption key", e.Place().Field("old_keys").Index(i).Span()})
		}
	}
	return found
}

// withPassword is a URL that holds a password, the empty secret for one that holds none.
func withPassword(s spec.Secret) spec.Secret {
	u, err := url.Parse(s.Reveal())
	if err != nil || u.User == nil {
		return spec.Secret{}
	}
	if _, has := u.User.Password(); !has {
		return spec.Secret{}
	}
	return s
}

// inMap finds the entries of a map that are called like secrets and written in clear.
func inMap(n spec.Node, field string, values map[string]spec.Secret) []plaintextSecret {
	var found []plaintextSecret
	at, ok := n.Place().Lookup(field)
	if !ok {
		return nil
	}
	for _, entry := range at.Parts { // in the order of the document
		name := strings.ToLower(entry.Name)
		for _, word := range []string{"key", "token", "secret", "password"} {
			if strings.HasSuffix(name, word) && values[entry.Name].Literal() {
				found = append(found, plaintextSecret{field + "." + entry.Name, entry.Span()})
				break
			}
		}
	}
	return found
}

// nameOf is an entity in a message: auth "account".
func nameOf(e spec.Entity) string { return string(e.Kind()) + " " + quoted(e.EntityID()) }
