package validate

import (
	"net/netip"
	"net/url"
	"reflect"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// secretRules returns the rule of secrets that others can read.
func secretRules() []rule { return []rule{plaintextSecrets()} }

// entityType returns the type of all entities.
func entityType() reflect.Type { return reflect.TypeFor[spec.Entity]() }

func plaintextSecrets() rule {
	return rule{code: "QT437", warning: true, check: check{nodeType: entityType(), run: func(p *ruleContext, n spec.Node) {
		for _, s := range secretsOf(n) {
			p.list.Add(p.reportAt(s.at, "the %s of %s is in plain text", s.what, nameOf(n.(spec.Entity))).
				WithHint("%s", s.hint()))
		}
		switch t := n.(type) {
		case *spec.APITool:
			p.reportUnencrypted(t, "endpoint", t.Endpoint, t.Auth, t.AllowPrivate)
		case *spec.MCPTool:
			p.reportUnencrypted(t, "url", t.URL, t.Auth, t.AllowPrivate)
		}
	}}}
}

// reportUnencrypted reports credentials of a tool that are sent to a public server without TLS. A
// signature (aws) is no secret.
func (p *ruleContext) reportUnencrypted(t spec.Entity, key, address string, auth spec.Ref[spec.Auth], private bool) {
	scheme, _, _ := strings.Cut(address, "://")
	_, signature := auth.To.(*spec.AWSAuth)
	if auth.To == nil || signature || private || !strings.EqualFold(scheme, "http") || isLoopback(address) {
		return
	}
	p.list.Add(p.reportAt(placeOf(t, key), "%s sends the credentials of %s in plain text: its %s has no TLS", nameOf(t), nameOf(auth.To), key).
		WithHint("write https://, or allow_private: true for a server with a private address"))
}

// isLoopback reports whether the host of an address is this computer. Package net is too large for the
// playground.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil { // such as one with a placeholder for its host
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// plaintextSecret is a secret in plain text in the document.
type plaintextSecret struct {
	what string // the key
	at   source.Span
}

// hint returns what to write instead. A text that begins with $ is probably the name of a
// variable, in the form of a shell.
func (s plaintextSecret) hint() string {
	hint := "write ${NAME} and set the environment variable"
	if line := []rune(s.at.File.Line(s.at.Start.Line)); s.at.Start.Column <= len(line) && strings.HasPrefix(strings.TrimLeft(string(line[s.at.Start.Column-1:]), `"'`), "$") {
		hint += "; $NAME without braces is not replaced"
	}
	return hint
}

// secretsOf returns the plain-text secrets of a node.
func secretsOf(n spec.Node) []plaintextSecret {
	return secretsIn(reflect.ValueOf(n).Elem(), n, "", "")
}

// secretsIn returns the plain-text secrets in a part of a node with a key. kind is the
// tag `secret` of the field: name for a value that is not secret in spite of its type,
// url for a URL that is secret only if it has a password.
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
				found = append(found, plaintextSecret{key, n.Position().Field(key).Index(i).Span()})
			}
		}
		return found
	case map[string]spec.Secret:
		return secretsInMap(n, key, value)
	case spec.Reference, spec.Entity:
		return nil
	case spec.Node:
		if v.Kind() == reflect.Pointer && !v.IsNil() {
			return secretsIn(v.Elem(), value, "", "")
		}
	}
	if v.Kind() == reflect.Struct {
		return secretsInFields(v, n, key)
	}
	return nil
}

// secretsInFields returns the plain-text secrets in the fields of a struct.
func secretsInFields(v reflect.Value, n spec.Node, key string) []plaintextSecret {
	var found []plaintextSecret
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = key // embedded: the key of the parent
		}
		found = append(found, secretsIn(v.Field(i), n, name, f.Tag.Get("secret"))...)
	}
	return found
}

// withPassword returns a URL with a password, or the empty secret if it has none.
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

// secretsInMap returns the plain-text entries of a map with the name of a secret.
func secretsInMap(n spec.Node, field string, values map[string]spec.Secret) []plaintextSecret {
	var found []plaintextSecret
	at, ok := n.Position().Lookup(field)
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

// nameOf returns an entity in a message, such as auth "account".
func nameOf(e spec.Entity) string { return string(e.Kind()) + " " + quoted(e.EntityID()) }
