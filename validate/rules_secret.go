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
	return secretsIn(reflect.ValueOf(n).Elem(), n, "", "")
}

// secretsIn finds the secrets in a part of a node under a key; kind is the tag
// `secret` of its field: name for a value that is no secret in spite of its type,
// url for an address that is one only if it has a password.
func secretsIn(v reflect.Value, n spec.Node, key, kind string) []plaintextSecret {
	var found []plaintextSecret
	switch value := v.Interface().(type) {
	case spec.Secret:
		if kind == "url" {
			value = withPassword(value)
		}
		if kind != "name" && value.Literal() {
			found = append(found, plaintextSecret{key, placeOf(n, key)})
		}
		return found
	case []spec.Secret:
		for i, one := range value {
			if one.Literal() {
				found = append(found, plaintextSecret{key, n.Place().Field(key).Index(i).Span()})
			}
		}
		return found
	case map[string]spec.Secret:
		return inMap(n, key, value)
	case spec.Reference, spec.Entity:
		return nil
	case spec.Node:
		if v.Kind() == reflect.Pointer && !v.IsNil() {
			return secretsIn(v.Elem(), value, "", "")
		}
	}
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = key // a part without a key of its own
		}
		found = append(found, secretsIn(v.Field(i), n, name, f.Tag.Get("secret"))...)
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
