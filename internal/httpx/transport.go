package httpx

import (
	"net"
	"net/http"
	"time"
)

// Transport makes a transport that gives up on a server which does not take a
// connection. For an answer it sets no limit, each call carries its own. It keeps
// up to perServer idle connections to one server: as many as there may be calls
// at once, for one that is over that is closed and made anew.
func Transport(perServer int) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           Dialer().DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          4 * perServer,
		MaxIdleConnsPerHost:   perServer,
		IdleConnTimeout:       90 * time.Second,
	}
}

// Dialer makes what a Transport dials with, for one that looks at addresses first.
func Dialer() *net.Dialer {
	return &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
}
