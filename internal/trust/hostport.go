package trust

import "strings"

// The functions of this file replace package net, which would make the checker in the
// browser larger.

// splitPort returns a host without its port, and whether it has one, as net.SplitHostPort.
func splitPort(host string) (name string, ok bool) {
	colon := strings.LastIndexByte(host, ':')
	if colon < 0 {
		return "", false
	}
	name = host[:colon]
	if inner, bracketed := strings.CutPrefix(name, "["); bracketed {
		if name, bracketed = strings.CutSuffix(inner, "]"); !bracketed {
			return "", false
		}
	} else if strings.Contains(name, ":") {
		return "", false
	}
	return name, !strings.ContainsAny(name, "[]") && !strings.ContainsAny(host[colon:], "[]")
}

// joinPort adds a port to a host, as net.JoinHostPort.
func joinPort(host, port string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}
