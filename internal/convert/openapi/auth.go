package openapi

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec"
)

// scheme is a security scheme of the file and the credentials that it becomes.
type scheme struct {
	name   string
	node   *input.Node
	id     string          // of the credentials
	made   *document.Block // nil if tools do not support the scheme
	used   bool
	scopes []string // that operations require, of an OAuth scheme
}

// readSchemes makes the credentials of the security schemes. They are environment
// variables, as the file has none.
func (c *converter) readSchemes() {
	all := pairs(c.root.Get("components").Get("securitySchemes"))
	if len(all) == 0 {
		all = pairs(c.root.Get("securityDefinitions"))
	}
	c.secured = c.hasSecurity()
	secrets := map[string]bool{}
	for _, s := range all {
		made := &scheme{name: s.Key, node: s.Value}
		secret := func(what string) document.EnvText {
			name := variableName(c.app.ID + "_" + what)
			if secrets[name] {
				name = variableName(c.app.ID + "_" + s.Key + "_" + what)
			}
			secrets[name] = true
			return document.EnvText("${" + name + "}")
		}
		if made.id = document.Slug(s.Key); made.id == "" {
			made.id = "auth"
		}
		made.made = c.credentials(made.id, c.resolve(s.Value), secret)
		if made.made != nil {
			made.id = c.ids.New(made.id, "auth")
			made.made.Entries[1].Value = made.id
		}
		c.schemes = append(c.schemes, made)
	}
}

// declareSchemes declares the credentials that tools use.
func (c *converter) declareSchemes() {
	for _, s := range c.schemes {
		if !s.used {
			continue
		}
		if len(s.scopes) > 0 {
			slices.Sort(s.scopes)
			s.made.Set("scopes", document.NameList(s.scopes))
		}
		c.app.Auths = append(c.app.Auths, s.made)
	}
}

// authOf returns the id of the credentials of an operation, empty for none: those of the
// first of its alternatives that tools support.
func (c *converter) authOf(o *operation) string {
	requirements := o.node.Get("security")
	if requirements == nil {
		requirements = c.root.Get("security")
	}
	if requirements == nil {
		return c.undeclaredAuth()
	}
	optional := len(items(requirements)) == 0
	for _, alternative := range items(requirements) {
		if len(alternative.Pairs) == 0 {
			optional = true
			continue
		}
		if id := c.alternative(o, alternative); id != "" {
			return id
		}
	}
	if !optional {
		for _, p := range requirements.Elements()[0].Pairs {
			c.note(input.Unsupported, p.Value, "The security scheme %s has no counterpart.", p.Key)
		}
	}
	return ""
}

// alternative returns the id of the credentials of one alternative of an operation, empty
// if tools do not support one of its schemes.
func (c *converter) alternative(o *operation, alternative *input.Node) string {
	var found []*scheme
	for _, p := range alternative.Entries() {
		i := slices.IndexFunc(c.schemes, func(s *scheme) bool { return s.name == p.Key })
		if i < 0 || c.schemes[i].made == nil {
			return ""
		}
		found = append(found, c.schemes[i])
	}
	for _, other := range found[1:] {
		c.note(input.Unsupported, alternative, "Tool %s needs %s and %s; it sends only the first.", o.id, found[0].name, other.name)
	}
	used := found[0]
	used.used = true
	for _, n := range alternative.Entries()[0].Value.Items {
		if used.made.Entries[0].Value == "oauth2" && n.Text != "" && !slices.Contains(used.scopes, n.Text) {
			used.scopes = append(used.scopes, n.Text)
		}
	}
	return used.id
}

// undeclaredAuth returns the credentials of an operation of a file that has schemes but
// does not say which operations use them: the first.
func (c *converter) undeclaredAuth() string {
	first := ""
	for _, s := range c.schemes {
		switch {
		case s.made == nil:
			c.note(input.Unsupported, s.node, "The security scheme %s has no counterpart.", s.name)
		case first != "" && !c.secured:
			c.note(input.Assumed, s.node, "The security scheme %s is not used: all tools use %s.", s.name, first)
		case !c.secured:
			first, s.used = s.id, true
		}
	}
	return first
}

// hasSecurity reports whether any operation of the file names a scheme.
func (c *converter) hasSecurity() bool {
	for _, path := range pairs(c.root.Get("paths")) {
		for _, method := range methods {
			if c.resolve(path.Value).Get(method).Get("security") != nil {
				return true
			}
		}
	}
	return false
}

// credentials returns the credentials of a security scheme, nil for an unknown one. secret
// returns the environment variable of a secret.
func (c *converter) credentials(id string, s *input.Node, secret func(string) document.EnvText) *document.Block {
	b := new(document.Block)
	token := func() *document.Block {
		return b.Set("type", "bearer_token").Set("id", id).Set("token", secret("TOKEN"))
	}
	kind := strings.ToLower(s.Get("type").Scalar() + " " + s.Get("scheme").Scalar())
	switch strings.TrimSpace(kind) {
	case "apikey":
		name, in := s.Get("name").Scalar(), s.Get("in").Scalar()
		if name == "" || in != "query" && (in != "header" || !spec.IsHeaderName(name)) {
			return nil
		}
		return b.Set("type", "api_key").Set("id", id).Set("api_key", secret("KEY")).Set(in, name)
	case "http bearer":
		return token()
	case "http basic", "basic":
		return b.Set("type", "basic").Set("id", id).Set("username", secret("USER")).Set("password", secret("PASSWORD"))
	case "oauth2":
		if address := tokenURL(s); address != "" {
			return b.Set("type", "oauth2").Set("id", id).Set("client_id", secret("CLIENT_ID")).
				Set("client_secret", secret("CLIENT_SECRET")).Set("token_url", address)
		}
		c.note(input.Assumed, s, "The security scheme %s needs a person to sign in: set a token that you obtained.", id)
		return token()
	case "openidconnect":
		c.note(input.Assumed, s, "The security scheme %s needs a person to sign in: set a token that you obtained.", id)
		return token()
	}
	return nil
}

// tokenURL returns the address of an OAuth scheme that issues tokens to programs.
func tokenURL(s *input.Node) string {
	if s.Get("flows") != nil {
		return absolute(s.Get("flows").Get("clientCredentials").Get("tokenUrl").Scalar())
	}
	if flow := s.Get("flow").Scalar(); flow != "" && flow != "application" { // Swagger 2
		return ""
	}
	return absolute(s.Get("tokenUrl").Scalar())
}

// absolute returns an address with a server, empty for others.
func absolute(address string) string {
	if spec.IsHTTPAddress(address) {
		return address
	}
	return ""
}

// variableName returns the name of an environment variable.
func variableName(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(text))
}
