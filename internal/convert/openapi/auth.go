package openapi

import (
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// credentials makes the credentials of the first security scheme that tools support.
// They are environment variables, as the file has none.
func (c *converter) credentials() {
	schemes := pairs(c.root.Get("components").Get("securitySchemes"))
	if len(schemes) == 0 {
		schemes = pairs(c.root.Get("securityDefinitions"))
	}
	for _, s := range schemes {
		scheme := c.resolve(s.Value)
		id := document.Slug(s.Key)
		made := c.scheme(new(document.Block), id, scheme)
		switch {
		case made == nil:
			c.note(input.Unsupported, s.Value, "The security scheme %s has no counterpart.", s.Key)
		case c.auth != "":
			c.note(input.Assumed, s.Value, "The security scheme %s is not used: all tools use %s.", s.Key, c.auth)
		default:
			c.auth = id
			c.ids.Taken[id] = true
			c.app.Auths = append(c.app.Auths, made)
		}
	}
}

// scheme returns the credentials of a security scheme, nil for an unknown one.
func (c *converter) scheme(b *document.Block, id string, s *input.Node) *document.Block {
	kind := strings.ToLower(s.Get("type").Scalar() + " " + s.Get("scheme").Scalar())
	switch strings.TrimSpace(kind) {
	case "apikey":
		b.Set("type", "api_key").Set("id", id).Set("api_key", c.secret("KEY"))
		name := s.Get("name").Scalar()
		switch in := s.Get("in").Scalar(); {
		case in == "query" && name != "":
			b.Set("query", name)
		case in == "header" && name != "":
			b.Set("header", name)
		default:
			return nil
		}
		return b
	case "http bearer":
		return b.Set("type", "bearer_token").Set("id", id).Set("token", c.secret("TOKEN"))
	case "http basic", "basic":
		return b.Set("type", "basic").Set("id", id).Set("username", c.secret("USER")).Set("password", c.secret("PASSWORD"))
	case "oauth2":
		if url := tokenURL(s); url != "" {
			return b.Set("type", "oauth2").Set("id", id).Set("client_id", c.secret("CLIENT_ID")).
				Set("client_secret", c.secret("CLIENT_SECRET")).Set("token_url", url)
		}
	}
	return nil
}

// tokenURL returns the first address of an OAuth scheme that issues tokens.
func tokenURL(s *input.Node) string {
	for _, flow := range pairs(s.Get("flows")) {
		if url := flow.Value.Get("tokenUrl").Scalar(); url != "" {
			return url
		}
	}
	return s.Get("tokenUrl").Scalar()
}

// secret returns the environment variable of a secret.
func (c *converter) secret(what string) document.EnvText {
	upper := func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}
	return document.EnvText("${" + strings.Map(upper, strings.ToUpper(c.app.ID)) + "_" + what + "}")
}
