package host

import (
	"net/http"
	"strings"
)

// Location returns the address of a resource of the server, an absolute and escaped path,
// relative to that of a request. So it is right below any prefix under which the server
// is mounted.
func Location(r *http.Request, resource string) string {
	depth := strings.Count(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	if depth == 0 {
		return "." + resource
	}
	return strings.Repeat("../", depth-1) + ".." + resource
}
