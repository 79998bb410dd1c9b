package mcpserver

// SetMaxSessions sets the maximum number of HTTP sessions of a server.
func SetMaxSessions(s *Server, n int) { s.owners.max = n }
