package storage

import (
	"net/url"
	"slices"
	"sync/atomic"
	"time"
)

// DefaultTimeout bounds one call of a server if the URL names no timeout.
const DefaultTimeout = 10 * time.Second

// Server is the address of a database server that holds a store.
type Server struct {
	Location Location
	URL      *url.URL   // without Query
	Query    url.Values // parameters for the driver
	Prefix   string     // of the names of tables or keys
	Timeout  time.Duration

	answered atomic.Bool // a call has succeeded
}

// ParseServer reads a URL with one of the schemes. It removes the parameters
// timeout and prefixKey, which set Timeout and Prefix, from the query. Errors
// hold no credentials.
func ParseServer(address, prefixKey, defaultPrefix string, schemes ...string) (*Server, error) {
	s := &Server{Location: Location(schemes[0]), Prefix: defaultPrefix, Timeout: DefaultTimeout}
	u, err := url.Parse(address)
	if err != nil { // its text holds the password
		return nil, s.Location.Unavailable("invalid URL: percent-encode the password")
	}
	if !slices.Contains(schemes, u.Scheme) {
		return nil, s.Location.Unavailable("its URL must begin with " + schemes[0] + ":// or " + schemes[1] + "://")
	}
	s.Location = Location((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String())
	if s.Query, err = url.ParseQuery(u.RawQuery); err != nil {
		return nil, s.Location.Unavailable("invalid parameters in its URL: percent-encode their values")
	}
	u.RawQuery = ""
	s.URL = u
	if prefix, ok := s.take(prefixKey); ok {
		s.Prefix = prefix
	}
	if text, ok := s.take("timeout"); ok {
		if s.Timeout, err = time.ParseDuration(text); err != nil {
			return nil, s.Location.Unavailable("its timeout must be a duration such as 10s")
		}
	}
	return s, nil
}

// take removes a parameter from the query.
func (s *Server) take(name string) (value string, ok bool) {
	value, ok = s.Query.Get(name), s.Query.Has(name)
	s.Query.Del(name)
	return value, ok
}

// Check returns an error if the timeout is not positive.
func (s *Server) Check() error {
	if s.Timeout <= 0 {
		return s.Location.Unavailable("its timeout must be more than 0, such as 10s")
	}
	return nil
}

// DriverURL returns the URL for the driver, with credentials.
func (s *Server) DriverURL() *url.URL {
	u := *s.URL
	u.RawQuery = s.Query.Encode()
	return &u
}
