package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/tool"
)

const (
	maxAttachment       = 20 << 20 // bytes
	attachmentTimeout   = 30 * time.Second
	attachmentRedirects = 5
)

// AttachmentPolicy decides which addresses named by clients the server may fetch. A
// client that could choose them freely could use the server to reach hosts that it
// cannot reach itself. The nil policy and the one of an empty list allow none. It is safe
// for concurrent use.
type AttachmentPolicy struct {
	hosts  []string // host:port; *.example.com:443 for the names below
	client *http.Client
}

// NewAttachmentPolicy returns a policy for a list of hosts: files.example.com,
// files.example.com:8443, or *.example.com for all names below it. Only https is
// fetched, and never from private addresses, including after redirects.
func NewAttachmentPolicy(hosts []string) (*AttachmentPolicy, error) {
	p := &AttachmentPolicy{}
	for _, entry := range hosts {
		host, port, err := splitPort(entry)
		if err != nil || strings.ContainsAny(strings.TrimPrefix(entry, "*."), "*/@? ") || strings.Trim(host, "*.") == "" {
			return nil, fmt.Errorf("the attachment host %q is not a host such as files.example.com or *.example.com", entry)
		}
		p.hosts = append(p.hosts, net.JoinHostPort(host, port))
	}
	p.client = tool.PublicClient(nil)
	p.client.Timeout = attachmentTimeout
	p.client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) > attachmentRedirects {
			return errors.New("too many redirects")
		}
		httpx.LimitHeaders(r, via[0])
		return p.Check(r.URL.String())
	}
	return p, nil
}

// splitPort returns the host in lower case and the port, which is 443 if it is not
// written.
func splitPort(hostport string) (host, port string, err error) {
	if strings.Contains(hostport, ":") {
		if host, port, err = net.SplitHostPort(hostport); err != nil {
			return "", "", err
		}
	} else {
		host, port = hostport, "443"
	}
	return strings.ToLower(strings.TrimSuffix(host, ".")), port, nil
}

// Check returns a *problem.Problem with status 422 if the policy does not allow to fetch
// an address. Addresses of the scheme data need no policy.
func (p *AttachmentPolicy) Check(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return refusedAttachment("the address of the attachment is not a URL")
	case u.Scheme != "https":
		return refusedAttachment("the server fetches attachments only over https")
	case u.User != nil:
		return refusedAttachment("the address of the attachment contains a user name")
	case p == nil || !p.contains(u):
		return refusedAttachment("the server does not fetch attachments from this host; send the content as data")
	}
	return nil
}

// contains reports whether the host of an address is on the list.
func (p *AttachmentPolicy) contains(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		port = "443"
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	return slices.ContainsFunc(p.hosts, func(entry string) bool {
		name, allowedPort, _ := net.SplitHostPort(entry)
		if port != allowedPort {
			return false
		}
		suffix, wildcard := strings.CutPrefix(name, "*")
		return host == name || wildcard && strings.HasSuffix(host, suffix) && len(host) > len(suffix)
	})
}

// Fetch returns the content of an allowed address, at most 20 MiB, and its media type.
// Errors are *problem.Problem without details of the network.
func (p *AttachmentPolicy) Fetch(ctx context.Context, address string) (content []byte, mediaType string, err error) {
	if err := p.Check(address); err != nil {
		return nil, "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, "", refusedAttachment("the address of the attachment is not a URL")
	}
	r.Header.Set("User-Agent", httpx.UserAgent())
	response, err := p.client.Do(r)
	if err != nil {
		if refused := problem.Of(err); refused != nil {
			return nil, "", refused
		}
		return nil, "", refusedAttachment("the attachment could not be fetched")
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, "", refusedAttachment("the attachment could not be fetched")
	}
	content, err = io.ReadAll(io.LimitReader(response.Body, maxAttachment+1))
	switch {
	case err != nil:
		return nil, "", refusedAttachment("the attachment could not be fetched")
	case len(content) > maxAttachment:
		return nil, "", refusedAttachment(fmt.Sprintf("the attachment is larger than %d bytes", maxAttachment))
	}
	mediaType, _, err = mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		mediaType = "application/octet-stream"
	}
	return content, mediaType, nil
}

func refusedAttachment(detail string) *problem.Problem {
	return problem.New(http.StatusUnprocessableEntity, "attachment_refused", "%s", detail)
}
