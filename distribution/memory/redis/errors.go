package redis

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	driver "github.com/redis/go-redis/v9"

	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
)

func (s *Store) diagnose(err error) (store.ErrorKind, string) {
	var reply driver.Error
	var op *net.OpError
	var dns *net.DNSError
	var wait net.Error
	switch {
	case errors.As(err, &reply) && !errors.Is(err, driver.Nil):
		return diagnoseServer(textfmt.OneLine(reply.Error()))
	case errors.As(err, &dns):
		return store.Unavailable, "cannot connect: unknown host " + dns.Name
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return store.Unavailable, "connection timed out"
	case errors.As(err, &op) && op.Op == "dial":
		return store.Unavailable, "cannot connect: " + textfmt.OneLine(op.Err.Error())
	case errors.As(err, &wait) && wait.Timeout():
		return store.Unavailable, storage.Timeout(s.server.Timeout).Error()
	case errors.As(err, &op), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return store.Unavailable, "the connection was lost"
	case strings.HasPrefix(err.Error(), "redis: can't parse"), strings.HasPrefix(err.Error(), "redis: invalid reply"):
		return store.Unavailable, "not a Redis server"
	}
	return store.Unavailable, textfmt.OneLine(err.Error())
}

// trouble reports whether trying again may help.
func trouble(err error) storage.Trouble {
	var reply driver.Error
	var op *net.OpError
	switch {
	case errors.As(err, &reply) && !errors.Is(err, driver.Nil):
		first, _, _ := strings.Cut(reply.Error(), " ")
		passing := []string{"BUSY", "TRYAGAIN", "LOADING", "MASTERDOWN", "CLUSTERDOWN"}
		if slices.Contains(passing, first) || strings.Contains(reply.Error(), "max number of clients reached") {
			return storage.Short
		}
	case errors.As(err, &op) && op.Op == "dial":
		return storage.Unreachable
	case op != nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return storage.Short
	}
	return storage.Permanent
}

// problems returns the meaning of the first word of a server's error.
func problems() map[string]struct {
	kind    store.ErrorKind
	message string
} {
	return map[string]struct {
		kind    store.ErrorKind
		message string
	}{
		"NOAUTH":      {store.Denied, "password required"},
		"WRONGPASS":   {store.Denied, "user or password rejected"},
		"NOPERM":      {store.Denied, "the user lacks permission"},
		"READONLY":    {store.Denied, "the server is read-only: is it a replica?"},
		"OOM":         {store.Full, "the server is out of memory"},
		"MISCONF":     {store.Full, "the server cannot write to its disk"},
		"BUSY":        {store.Locked, "a script of another process blocks the server"},
		"TRYAGAIN":    {store.Locked, "the cluster is moving the session"},
		"WRONGTYPE":   {store.Corrupt, "a key has another type than qtype created"},
		"LOADING":     {store.Unavailable, "the server is loading its data"},
		"MASTERDOWN":  {store.Unavailable, "the replica has lost its master"},
		"NOREPLICAS":  {store.Unavailable, "the server has too few replicas to accept writes"},
		"CLUSTERDOWN": {store.Unavailable, "the cluster is down"},
		"CROSSSLOT":   {store.Unavailable, "a proxy in front of the cluster splits keys"},
		"MOVED":       {store.Unavailable, "the server is a node of a cluster; add cluster=true to the URL"},
		"ASK":         {store.Unavailable, "the server is a node of a cluster; add cluster=true to the URL"},
	}
}

// uncountedMessage reports that another program added messages.
const uncountedMessage = "the session has entries that its head does not count"

// diagnoseServer appends the server's message, which holds no password.
func diagnoseServer(message string) (store.ErrorKind, string) {
	first, _, _ := strings.Cut(message, " ")
	if p, ok := problems()[first]; ok {
		return p.kind, p.message + " (" + message + ")"
	}
	if strings.Contains(message, "equal or smaller than the target stream top item") {
		return store.Corrupt, uncountedMessage
	}
	return store.Unavailable, message
}
