package access

import (
	"encoding/json"
	"net/http"
	"strings"
)

// metadataPath is where clients find out which provider issues tokens for a resource (RFC 9728). The
// path of the resource, such as /mcp, follows it.
const metadataPath = "/.well-known/oauth-protected-resource"

// resourceMetadata is the description of a resource (RFC 9728).
type resourceMetadata struct {
	Resource string   `json:"resource"` // its address
	Issuers  []string `json:"authorization_servers"`
	Methods  []string `json:"bearer_methods_supported"`
}

// isMetadata reports whether a request reads the description of a resource, which needs no
// credential. Without an issuer there is none.
func (c *Control) isMetadata(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, metadataPath)
	return ok && (rest == "" || rest[0] == '/') && r.Method == http.MethodGet && c.tokens != nil
}

// writeMetadata writes the description of the resource that a request names.
func (c *Control) writeMetadata(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Access-Control-Allow-Origin", "*") // it is public
	resource := c.Address(r) + strings.TrimPrefix(r.URL.EscapedPath(), metadataPath)
	_ = json.NewEncoder(w).Encode(resourceMetadata{resource, []string{c.tokens.cfg.Issuer}, []string{"header"}}) // fails only if the client is gone
}

// metadataOf returns the address of the description of the resource of a request, empty without an
// issuer, and for a host that cannot be part of a header.
func (c *Control) metadataOf(r *http.Request) string {
	if c.tokens == nil || strings.ContainsAny(r.Host, "\"\\ ") {
		return ""
	}
	path := ""
	if r.URL.Path == "/mcp" {
		path = r.URL.Path
	}
	return c.Address(r) + metadataPath + path
}
