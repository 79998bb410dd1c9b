package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"

	driver "github.com/redis/go-redis/v9"

	"github.com/qtype-dev/qtype/memory"
)

// What the script answers.
const (
	conflict            = 0 // another writer was faster
	done                = 1 // the change was made, now or by an earlier attempt of the same call
	conflictAfterCreate = 2 // it made the session, and another writer has changed it since
	tooNew              = 3 // a newer version of this program wrote the session
	duplicate           = 4 // the session has one of the messages already
)

// applyScript makes one change. A server stops a script for want of memory only
// before it has written anything, so the change is whole; and the entries come
// first, for of all commands only XADD may refuse what comes: what an outsider
// added to the stream.
//
// Each change has a random number, own, by which its writer knows it again where
// an answer was lost: the version alone would not do, for two writers may go
// from one version to the same next.
//
// ARGV: format, version, next, state, own, then four counted lists: entries (seq, h,
// m, id or an empty string for a failed one, and whether it has one), events,
// values to set (field, value), values to remove (field); memory and session.
var applyScript = driver.NewScript(`
local head = redis.call('HMGET', KEYS[1], 'version', 'format', 'change', 'born')
if head[2] and tonumber(head[2]) > tonumber(ARGV[1]) then return 3 end
if head[3] == ARGV[5] then return 1 end
if (head[1] or '0') ~= ARGV[2] then
  if head[4] == ARGV[5] then return 2 end
  return 0
end
local i = 6
local function each(width, act)
  local n = tonumber(ARGV[i])
  i = i + 1
  for _ = 1, n do act(); i = i + width end
end
local said = false
each(5, function()
  if ARGV[i+4] == '1' and redis.call('HEXISTS', KEYS[3], ARGV[i+3]) == 1 then said = true end
end)
if said then return 4 end
i = 6
each(5, function()
  redis.call('XADD', KEYS[2], ARGV[i] .. '-0', 'h', ARGV[i+1], 'm', ARGV[i+2])
  if ARGV[i+4] == '1' then redis.call('HSET', KEYS[3], ARGV[i+3], ARGV[i]) end
end)
each(1, function() redis.call('RPUSH', KEYS[4], ARGV[i]) end)
each(2, function() redis.call('HSET', KEYS[1], ARGV[i], ARGV[i+1]) end)
each(1, function() redis.call('HDEL', KEYS[1], ARGV[i]) end)
redis.call('HSET', KEYS[1], 'version', ARGV[3], 'state', ARGV[4], 'format', ARGV[1], 'change', ARGV[5])
if not head[1] then redis.call('HSET', KEYS[1], 'born', ARGV[5], 'memory', ARGV[i], 'session', ARGV[i+1]) end
return 1
`)

// deleteScript removes a session, where ARGV[1] is given only one that has that
// version, and answers when it was born, as member needs it: 0 where there is
// none, -1 where the version is another.
var deleteScript = driver.NewScript(`
local head = redis.call('HMGET', KEYS[1], 'born', 'version')
if ARGV[1] and head[2] ~= ARGV[1] then return '-1' end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
return head[1] or '0'
`)

// Distinct is true: the script looks ids up.
func (s *Store) Distinct() bool { return true }

// Apply makes one change by one script, in one round trip; the first change of a
// session also lists it.
func (s *Store) Apply(ctx context.Context, k memory.Key, c memory.Change) error {
	own := rand.Int64N(math.MaxInt64) + 1
	args, err := encode(k, c, own)
	if err != nil {
		return err
	}
	_, err = use(ctx, s, func(ctx context.Context, client driver.UniversalClient) (struct{}, error) {
		return struct{}{}, s.apply(ctx, client, k, change{own: own, first: c.Version == 0, args: args})
	})
	return err
}

// change is one as the script takes it.
type change struct {
	own   int64 // its random number
	first bool  // it begins a session
	args  []any
}

func (s *Store) apply(ctx context.Context, client driver.UniversalClient, k memory.Key, c change) error {
	if c.first {
		if err := client.ZAdd(ctx, s.list(k.Memory), driver.Z{Member: member(k.Session, c.own)}).Err(); err != nil {
			return err
		}
	}
	answer, err := applyScript.Run(ctx, client, s.names(k).slice(), c.args...).Int()
	switch {
	case err != nil:
		return err
	case answer == done:
		return nil
	case answer == conflictAfterCreate:
		return memory.ErrConflict
	case c.first: // this life of the session never began
		if err := client.ZRem(ctx, s.list(k.Memory), member(k.Session, c.own)).Err(); err != nil {
			return err
		}
	}
	switch answer {
	case tooNew:
		return s.newer()
	case duplicate:
		return memory.ErrDuplicateMessage
	}
	return memory.ErrConflict
}

// newer says that a later version of this program wrote a session.
func (s *Store) newer() error {
	return &memory.StoreError{Place: s.place, Problem: memory.TooNew,
		Message: fmt.Sprintf("a newer version of qtype wrote it (this one knows format %d)", format)}
}

// valueField is the field of a head that a named value is kept in.
const valueField = "v:"

// encode is a change as applyScript takes it.
func encode(k memory.Key, c memory.Change, own int64) ([]any, error) {
	state, err := json.Marshal(c.State)
	if err != nil {
		return nil, err
	}
	args := []any{format, c.Version, c.Next, state, own, len(c.Entries)}
	for _, e := range c.Entries {
		raw, err := e.Message.MarshalJSON()
		if err != nil {
			return nil, err
		}
		args = append(args, e.Seq, header(e), raw, e.Message.ID, flag(e.Status != memory.Failed))
	}
	args = append(args, len(c.Events))
	for _, e := range c.Events {
		raw, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		args = append(args, raw)
	}
	var set, unset []any
	for name, value := range c.Values {
		if value == nil {
			unset = append(unset, valueField+name)
		} else {
			set = append(set, valueField+name, value)
		}
	}
	args = append(append(args, len(set)/2), set...)
	args = append(append(args, len(unset)), unset...)
	return append(args, k.Memory, k.Session), nil
}

// header is what an entry has beside its message.
func header(e *memory.Entry) string {
	return fmt.Sprint(e.Turn, e.Tokens, e.Time.UnixMicro(), flag(e.Status == memory.Failed))
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// Delete removes everything that the session has, then takes it from the list.
func (s *Store) Delete(ctx context.Context, k memory.Key) error { return s.remove(ctx, k) }

// Remove is Delete for a session that still has the version. Where the answer
// was lost with the connection the driver asks once more, and ErrConflict may
// then say of a session that this call deleted that it is gone.
func (s *Store) Remove(ctx context.Context, k memory.Key, version int64) error {
	return s.remove(ctx, k, version)
}

// remove deletes a session; version is none or the one that it must have.
func (s *Store) remove(ctx context.Context, k memory.Key, version ...any) error {
	_, err := use(ctx, s, func(ctx context.Context, client driver.UniversalClient) (struct{}, error) {
		born, err := deleteScript.Run(ctx, client, s.names(k).slice(), version...).Int64()
		switch {
		case err == nil && born < 0:
			err = memory.ErrConflict
		case err == nil && born != 0:
			err = client.ZRem(ctx, s.list(k.Memory), member(k.Session, born)).Err()
		}
		return struct{}{}, err
	})
	return err
}
