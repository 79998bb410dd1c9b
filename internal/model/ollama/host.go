package ollama

import (
	"net"
	"net/url"
	"strings"
)

// HostURL returns the URL of the server that OLLAMA_HOST names, read as Ollama
// does: a host, a host and a port, or a URL. The addresses of a server that
// listens on all interfaces become that of the local host.
func HostURL(text string) string {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return text
	}
	host, port := u.Hostname(), u.Port()
	if port == "" && u.Scheme == "http" {
		port = "11434"
	}
	if host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	if port != "" {
		u.Host = net.JoinHostPort(host, port)
	}
	return u.String()
}
