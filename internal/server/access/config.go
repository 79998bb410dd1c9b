package access

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/server/problem"
)

// KeysVariable is the environment variable with API keys.
const KeysVariable = "QTYPE_API_KEYS"

// Config describes who may call a server and how much. The zero value is a server on
// loopback without authentication, with the default limits.
type Config struct {
	// Host is the address or name that the server listens on (--host). It decides
	// defaults only; CheckListen decides whether the server may listen there.
	Host string
	// Keys are API keys as "name:key,name:key" (QTYPE_API_KEYS).
	Keys string
	// KeyFile is a file with one "name:sha256:HEX" in each line (--api-keys). It is
	// read again when it changes.
	KeyFile string
	// OIDC accepts tokens of an OpenID provider.
	OIDC OIDC
	// Hosts are the names under which clients reach the server, with or without a port
	// (--allowed-host). Without authentication requests for other names are refused; IP
	// addresses and localhost are always accepted. With authentication the list is
	// checked only if it is not empty.
	Hosts []string
	// Origins are the origins of web pages that may call the server from a browser, such
	// as https://app.example.com (--cors-origin). "*" needs authentication.
	Origins []string
	// Proxies are addresses or prefixes of reverse proxies (--trusted-proxy). Only for
	// their requests the address of the client is read from X-Forwarded-For, the scheme from
	// X-Forwarded-Proto, and the path below which clients reach the server from X-Forwarded-Prefix.
	Proxies []string
	// PublicAgentCard lets clients read the cards of agents (A2A) without a credential
	// (--public-agent-card). They name the flows without an allow list.
	PublicAgentCard bool
	// Limits bound what callers may use.
	Limits Limits
	// TLS encrypts connections.
	TLS TLS
	// AttachmentHosts are the hosts from which the server may fetch attachments that a
	// client names by their address (--attachment-host), as AttachmentPolicy describes.
	AttachmentHosts []string
	// Logger receives a line for each refused request. nil is slog.Default.
	Logger *slog.Logger
	// WriteProblem writes the response to a refused request, for protocols with another
	// form of errors. It must write the status of the problem. nil is problem.Respond.
	WriteProblem func(http.ResponseWriter, *http.Request, *problem.Problem)
	// HTTP is the client for the OpenID provider and the ACME server. nil is a client
	// with a timeout of 10 s.
	HTTP *http.Client
}

// OIDC describes which tokens are accepted: signed JWTs, ID tokens or access tokens.
type OIDC struct {
	// Issuer is the URL of the provider (--oidc-issuer). Empty accepts no tokens.
	Issuer string
	// Audience must be among the audiences of a token (--oidc-audience). Required.
	Audience string
	// NameClaim is the claim with the name of the principal (--oidc-name-claim), "sub" if
	// empty. The provider must guarantee that it is unique and that users cannot choose
	// it; with "email" tokens need email_verified: true.
	NameClaim string
	// RolesClaim is the claim with the roles (--oidc-roles-claim), "roles" if empty: a
	// list of texts or a text with blanks between them. "a.b" is the claim b in a, unless
	// there is a claim of that name.
	RolesClaim string
	// Algorithms are the accepted signature algorithms (--oidc-algorithm). Empty accepts
	// RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA. Others are
	// errors.
	Algorithms []string
	// Skew is by how much the clocks of the provider and the server may differ
	// (--oidc-clock-skew), 1 minute if 0, none if negative.
	Skew time.Duration
}

// TLS describes the certificate of the server: from files, by ACME, or none.
type TLS struct {
	// CertFile and KeyFile are PEM files (--tls-cert, --tls-key). They are read again
	// when they change.
	CertFile, KeyFile string
	// Domains are the names for which certificates are requested by ACME
	// (--acme-domain). The ACME server must reach this server on port 443.
	Domains []string
	// Cache is the folder in which certificates are stored (--acme-cache). Required with
	// Domains.
	Cache string
	// Email is the contact for the ACME server (--acme-email); may be empty.
	Email string
	// Directory is the URL of the ACME server (--acme-directory), Let's Encrypt if empty.
	// Requesting certificates accepts its terms of service.
	Directory string
}

// Limits bound requests. Zero is the default, a negative number no limit. A principal
// is a key or user; without authentication each client address counts as one.
type Limits struct {
	BodyBytes   int64         // of a request body (--max-body), 32 MiB
	HeaderBytes int           // of all headers of a request, 32 KiB
	HeaderCount int           // headers of a request, 100
	HeaderTime  time.Duration // to send the headers, and for the TLS handshake, 10 s
	BodyTime    time.Duration // to send the body, in addition to its size at BodyRate, 10 s
	BodyRate    int64         // bytes per second that an upload must reach on average, 1024
	RequestTime time.Duration // of a request that is not a stream (--request-timeout), 15 min
	WriteTime   time.Duration // in which a client must accept each part of a response, 30 s
	IdleTime    time.Duration // of a connection between requests, 2 min
	Requests    int           // concurrent requests of a principal, without streams (--max-requests), 256
	Streams     int           // concurrent streams of a principal (--max-streams), 1,000
	Total       int           // concurrent requests and streams of all principals, 20,000
	Connections int           // open connections (--max-connections), 20,000
	Rate        float64       // requests per second of a principal (--rate), 50
	Burst       int           // requests at once above Rate, 200
	Rows        int           // rows of a request (--max-rows), 10,000
}

const (
	defaultBodyBytes   = 32 << 20
	defaultHeaderBytes = 32 << 10
	defaultHeaderCount = 100
	defaultHeaderTime  = 10 * time.Second
	defaultBodyTime    = 10 * time.Second
	defaultBodyRate    = 1024
	defaultRequestTime = 15 * time.Minute
	defaultWriteTime   = 30 * time.Second
	defaultIdleTime    = 2 * time.Minute
	defaultRequests    = 256
	defaultStreams     = 1000
	defaultTotal       = 20_000
	defaultConnections = 20_000
	defaultRate        = 50
	defaultBurst       = 200
	defaultRows        = 10_000
	localConcurrency   = 10_000 // requests, and streams, of one address in local mode
)

// withDefaults sets the limits that are zero. In local mode, on loopback without
// authentication, the rate is not limited: the caller is the user of the computer.
func (l Limits) withDefaults(local bool) Limits {
	if local {
		set(&l.Rate, -1)
		set(&l.Requests, localConcurrency)
		set(&l.Streams, localConcurrency)
	}
	set(&l.BodyBytes, defaultBodyBytes)
	set(&l.HeaderBytes, defaultHeaderBytes)
	set(&l.HeaderCount, defaultHeaderCount)
	set(&l.HeaderTime, defaultHeaderTime)
	set(&l.BodyTime, defaultBodyTime)
	set(&l.BodyRate, defaultBodyRate)
	set(&l.RequestTime, defaultRequestTime)
	set(&l.WriteTime, defaultWriteTime)
	set(&l.IdleTime, defaultIdleTime)
	set(&l.Requests, defaultRequests)
	set(&l.Streams, defaultStreams)
	set(&l.Total, defaultTotal)
	set(&l.Connections, defaultConnections)
	set(&l.Rate, defaultRate)
	set(&l.Burst, defaultBurst)
	set(&l.Rows, defaultRows)
	return l
}

// set replaces a zero value.
func set[T comparable](value *T, byDefault T) {
	var zero T
	if *value == zero {
		*value = byDefault
	}
}
