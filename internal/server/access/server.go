package access

import (
	"bytes"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	maxH2Streams = 250              // of one HTTP/2 connection
	pingAfter    = 30 * time.Second // without a frame of an HTTP/2 connection
	pingTimeout  = 15 * time.Second
)

// Server returns a server for Wrap(h): with time limits against slow clients and, if
// configured, with TLS and HTTP/2. Responses of any duration are possible: the time
// limits are those of each write.
func (c *Control) Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           c.Wrap(h),
		ReadHeaderTimeout: max(c.limits.HeaderTime, 0),
		IdleTimeout:       max(c.limits.IdleTime, 0),
		MaxHeaderBytes:    max(c.limits.HeaderBytes, 0),
		TLSConfig:         c.certs.config(),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxH2Streams, SendPingTimeout: pingAfter,
			PingTimeout: pingTimeout, WriteByteTimeout: max(c.limits.WriteTime, 0)},
		ErrorLog: log.New(serverLog{c.logger}, "", 0),
	}
}

// Serve accepts the connections of a listener for a server of Control.Server, with the
// limits of connections, until the server is shut down.
func (c *Control) Serve(srv *http.Server, l net.Listener) error {
	l = c.limitConnections(l)
	if srv.TLSConfig == nil {
		return srv.Serve(l)
	}
	return srv.ServeTLS(l, "", "")
}

// serverLog writes the messages of net/http to a logger. Failed handshakes are for
// debugging: any client can cause them.
type serverLog struct{ logger *slog.Logger }

// Write logs a message.
func (s serverLog) Write(line []byte) (int, error) {
	text := string(bytes.TrimSpace(line))
	if bytes.Contains(line, []byte("TLS handshake error")) {
		s.logger.Debug(text)
	} else {
		s.logger.Error(text)
	}
	return len(line), nil
}
