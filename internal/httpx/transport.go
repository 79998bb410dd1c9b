package httpx

import (
	"net"
	"net/http"
	"time"
)

// Transport returns a transport that times out connecting, but has no limit for an
// answer: each call sets its own. It keeps up to perServer idle connections to a
// server, which should be the number of concurrent calls.
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

// Dialer returns the dialer of a Transport, for transports that check addresses.
func Dialer() *net.Dialer {
	return &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
}
