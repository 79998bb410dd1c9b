package mcpserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Path is the path of the server's endpoint over HTTP.
const Path = "/mcp"

// The timeouts of the HTTP server. Answers have none: runs may take long.
const (
	headerTimeout   = 10 * time.Second
	shutdownTimeout = 5 * time.Second
)

// Listen returns a listener for the address of an HTTP server, HOST:PORT or :PORT,
// which is on loopback. Another host than loopback is an ExposedError unless open is
// set.
func Listen(ctx context.Context, address string, open bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &AddressError{address}
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); !open && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, &ExposedError{host}
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
}

// AddressError reports an address that is not HOST:PORT.
type AddressError struct{ Address string }

// Error names the address.
func (e *AddressError) Error() string {
	return "the address " + e.Address + " is not of the form HOST:PORT"
}

// ExposedError reports a host from which others could call a server that authenticates
// no one.
type ExposedError struct{ Host string }

// Error names the host.
func (e *ExposedError) Error() string {
	return "listening on " + e.Host + " would let others call a server without authentication"
}

// Serve serves clients over HTTP at Path until ctx is done. It closes the server and the
// listener. Requests of web pages of other origins are rejected.
func Serve(ctx context.Context, l net.Listener, s *Server) error {
	routes := http.NewServeMux()
	routes.Handle(Path, http.NewCrossOriginProtection().Handler(s))
	server := &http.Server{Handler: routes, ReadHeaderTimeout: headerTimeout}
	stop := context.AfterFunc(ctx, func() {
		s.Close() // first, because open streams would delay the shutdown
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := server.Shutdown(late); err != nil {
			_ = server.Close() // connections are cut, there is nothing to report
		}
	})
	err := server.Serve(l)
	if !stop() && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	s.Close()
	return err
}
