package redis

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	driver "github.com/redis/go-redis/v9"

	"github.com/qtype-dev/qtype/internal/paging"
	"github.com/qtype-dev/qtype/memory"
)

// explain makes one clear line of what the server, the network or the driver
// says. Ctx is the bounded one: it knows who ran out of time.
func (s *Store) explain(ctx context.Context, err error) error {
	var known *memory.StoreError
	if err == nil || errors.Is(err, memory.ErrConflict) || errors.Is(err, memory.ErrDuplicateMessage) || errors.As(err, &known) {
		return err
	}
	if slow, stopped := paging.Cause(ctx); slow {
		return &memory.StoreError{Place: s.place, Problem: memory.Unavailable, Message: context.Cause(ctx).Error(), Err: err}
	} else if stopped != nil {
		return stopped
	}
	problem, message := s.diagnose(err)
	return &memory.StoreError{Place: s.place, Problem: problem, Message: message, Err: err}
}

func (s *Store) diagnose(err error) (memory.ErrorKind, string) {
	var answer driver.Error
	var op *net.OpError
	var dns *net.DNSError
	var wait net.Error
	switch {
	case errors.As(err, &answer) && !errors.Is(err, driver.Nil):
		return diagnoseServer(oneLine(answer))
	case errors.As(err, &dns):
		return memory.Unavailable, "it cannot be reached: there is no host " + dns.Name
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return memory.Unavailable, "it does not take a connection"
	case errors.As(err, &op) && op.Op == "dial":
		return memory.Unavailable, "it cannot be reached: " + oneLine(op.Err)
	case errors.As(err, &wait) && wait.Timeout():
		return memory.Unavailable, paging.Timeout(s.timeout).Error()
	case errors.As(err, &op), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return memory.Unavailable, "the connection was lost"
	case strings.HasPrefix(err.Error(), "redis: can't parse"), strings.HasPrefix(err.Error(), "redis: invalid reply"):
		return memory.Unavailable, "what answers there does not speak Redis's protocol"
	}
	return memory.Unavailable, oneLine(err)
}

// problems are what the first word of a server's error means.
func problems() map[string]struct {
	problem memory.ErrorKind
	message string
} {
	return map[string]struct {
		problem memory.ErrorKind
		message string
	}{
		"NOAUTH":      {memory.Denied, "it wants a password"},
		"WRONGPASS":   {memory.Denied, "it refuses the user or the password"},
		"NOPERM":      {memory.Denied, "the user lacks permission"},
		"READONLY":    {memory.Denied, "it only lets read: is it a replica?"},
		"OOM":         {memory.Full, "its memory is full"},
		"MISCONF":     {memory.Full, "it cannot write to its disk"},
		"BUSY":        {memory.Locked, "another program's script keeps it busy"},
		"TRYAGAIN":    {memory.Locked, "the cluster is moving the session"},
		"WRONGTYPE":   {memory.Corrupt, "a key is not as qtype made it"},
		"LOADING":     {memory.Unavailable, "it is still loading its data"},
		"MASTERDOWN":  {memory.Unavailable, "it has lost its master"},
		"NOREPLICAS":  {memory.Unavailable, "it has too few replicas to write"},
		"CLUSTERDOWN": {memory.Unavailable, "the cluster is down"},
		"CROSSSLOT":   {memory.Unavailable, "it is a cluster behind a proxy that splits keys"},
		"MOVED":       {memory.Unavailable, "it is a node of a cluster; add cluster=true to the URL"},
		"ASK":         {memory.Unavailable, "it is a node of a cluster; add cluster=true to the URL"},
	}
}

// diagnoseServer adds the server's own words, which name no password.
func diagnoseServer(words string) (memory.ErrorKind, string) {
	first, _, _ := strings.Cut(words, " ")
	if p, ok := problems()[first]; ok {
		return p.problem, p.message + " (" + words + ")"
	}
	if strings.Contains(words, "equal or smaller than the target stream top item") {
		return memory.Corrupt, "the session holds more than its head knows of"
	}
	return memory.Unavailable, words
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
