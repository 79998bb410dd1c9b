package awssdk

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
)

// emptyHash is the SHA-256 of an empty body.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// DatabaseToken returns the password with which a user logs in to a database of Amazon RDS
// or Aurora. Connections can be opened with it for 15 minutes. The region is that of the
// host's name, else that of the identity.
func (s *Signer) DatabaseToken(ctx context.Context, host string, port int, user string, now time.Time) (string, error) {
	region := hostRegion(host)
	if region == "" {
		var err error
		if region, err = s.Region(); err != nil {
			return "", err
		}
	}
	keys, err := s.credentials.Retrieve(ctx)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", s.noCredentials(err)
	}
	q := url.Values{"Action": {"connect"}, "DBUser": {user}, "X-Amz-Expires": {"900"}}
	address := url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(port)), Path: "/", RawQuery: q.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return "", err
	}
	signed, _, err := s.signer.PresignHTTP(ctx, keys, req, emptyHash, "rds-db", region, now)
	if err != nil {
		return "", fmt.Errorf("%s: %s", s.identity, httpx.SingleLine(err.Error(), 300))
	}
	return strings.TrimPrefix(signed, "https://"), nil
}

// hostRegion returns the region in the name of a host of RDS:
// db.c123.eu-west-1.rds.amazonaws.com.
func hostRegion(host string) string {
	name, _, ok := strings.Cut(strings.ToLower(host), ".rds.amazonaws.com")
	if !ok {
		return ""
	}
	return name[strings.LastIndexByte(name, '.')+1:]
}
