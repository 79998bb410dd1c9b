package redis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	driver "github.com/redis/go-redis/v9"

	"github.com/qtype-dev/qtype/distribution/redisclient"
	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory/store"
)

// Results of applyScript.
const (
	conflict            = 0 // the session has another version
	done                = 1 // the change was made, by this or an earlier attempt of the call
	conflictAfterCreate = 2 // an earlier attempt created the session, and another writer has changed it since
	tooNew              = 3 // written by a newer version of qtype
	duplicate           = 4 // the session already has one of the messages
	uncounted           = 5 // the list of messages has others than the head counts
)

// applyScript makes one change, atomically: a server that is out of memory stops a
// script only before its first write. Entries are written first, because XADD, for a
// session of format 1, is the only command that may fail, namely if another program
// added to the stream.
//
// A random number, own, identifies the change, so that a writer whose reply was
// lost recognizes it. The version is not enough: two writers may go from one
// version to the same next one.
//
// ARGV: format, version, next, state, own, then four counted lists: entries (seq, h,
// m, message id, and 1 if the id must be unique), events, values to set (field,
// value), values to remove (field); then memory and session.
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
local seen = false
each(5, function()
  if ARGV[i+4] == '1' and redis.call('HEXISTS', KEYS[3], ARGV[i+3]) == 1 then seen = true end
end)
if seen then return 4 end
local stream = head[2] == '1'
local last = redis.call('LINDEX', KEYS[5], -1)
if last and not stream and ARGV[6] ~= '0' then
  last = tonumber(string.match(last, '^%d+'))
  if last >= tonumber(ARGV[7]) or last < redis.call('LLEN', KEYS[5]) then return 5 end
end
i = 6
each(5, function()
  if stream then
    redis.call('XADD', KEYS[2], ARGV[i] .. '-0', 'h', ARGV[i+1], 'm', ARGV[i+2])
  else
    redis.call('RPUSH', KEYS[5], ARGV[i] .. ' ' .. ARGV[i+1] .. ' ' .. ARGV[i+2])
  end
  if ARGV[i+4] == '1' then redis.call('HSET', KEYS[3], ARGV[i+3], ARGV[i]) end
end)
each(1, function() redis.call('RPUSH', KEYS[4], ARGV[i]) end)
each(2, function() redis.call('HSET', KEYS[1], ARGV[i], ARGV[i+1]) end)
each(1, function() redis.call('HDEL', KEYS[1], ARGV[i]) end)
redis.call('HSET', KEYS[1], 'version', ARGV[3], 'state', ARGV[4], 'change', ARGV[5])
if not head[1] then redis.call('HSET', KEYS[1], 'format', ARGV[1], 'born', ARGV[5], 'memory', ARGV[i], 'session', ARGV[i+1]) end
return 1
`)

// deleteScript deletes a session; with ARGV[1], only one that has this version. It
// returns the number that member needs, 0 if there is no such session, and -1 if
// it has another version.
var deleteScript = driver.NewScript(`
local head = redis.call('HMGET', KEYS[1], 'born', 'version')
if ARGV[1] and head[2] ~= ARGV[1] then return '-1' end
redis.call('UNLINK', unpack(KEYS))
return head[1] or '0'
`)

// Distinct returns true: the script rejects duplicates.
func (s *Store) Distinct() bool { return true }

// Apply makes one change by one script, in one round trip. The first change of a
// session takes another one, to list it.
func (s *Store) Apply(ctx context.Context, k store.Key, c store.Change) error {
	own := rand.Int64N(math.MaxInt64) + 1
	args, err := encode(k, c, own)
	if err != nil {
		return err
	}
	_, err = use(ctx, s, func(ctx context.Context, client redisclient.Client) (struct{}, error) {
		return struct{}{}, apply(ctx, s, client, k, change{own: own, first: c.Version == 0, args: args, version: c.Version, last: c.State.Last - int64(len(c.Entries))})
	})
	return err
}

// change is a store.Change in the form of the script.
type change struct {
	own   int64 // random number that identifies it
	first bool  // it creates the session
	args  []any

	version, last int64 // of the session before it
}

func apply(ctx context.Context, s *Store, client redisclient.Client, k store.Key, c change) error {
	if c.first {
		if err := client.ZAdd(ctx, s.list(k.Memory), driver.Z{Member: member(k.Session, c.own)}).Err(); err != nil {
			return err
		}
	}
	result, err := applyScript.Run(ctx, client, s.names(k).slice(), c.args...).Int()
	if result == uncounted {
		if repaired, failure := repair(ctx, s, client, k, c.version, c.last); failure != nil {
			return failure
		} else if repaired {
			result, err = applyScript.Run(ctx, client, s.names(k).slice(), c.args...).Int()
		}
	}
	switch {
	case err != nil:
		return err
	case result == done:
		return nil
	case result == conflictAfterCreate:
		return store.ErrConflict
	case c.first: // the session was not created
		if err := client.ZRem(ctx, s.list(k.Memory), member(k.Session, c.own)).Err(); err != nil {
			return err
		}
	}
	switch result {
	case tooNew:
		return s.tooNew()
	case duplicate:
		return store.ErrDuplicateMessage
	case uncounted:
		return s.server.Location.Error(store.Corrupt, uncountedMessage, nil)
	}
	return store.ErrConflict
}

func (s *Store) tooNew() error {
	return s.server.Location.Error(store.TooNew, fmt.Sprintf("written by a newer version of qtype (this version supports up to format %d)", format), nil)
}

// valueField is the prefix of the fields that hold named values in a head.
const valueField = "v:"

// encode converts a change to the arguments of applyScript.
func encode(k store.Key, c store.Change, own int64) ([]any, error) {
	record, err := storage.Encode(c)
	if err != nil {
		return nil, err
	}
	args := []any{format, c.Version, c.Next, record.State, own, len(c.Entries)}
	for i, e := range c.Entries {
		args = append(args, e.Seq, header(e), record.Messages[i], e.Message.ID, flag(e.Status != store.Failed))
	}
	args = append(args, len(record.Events))
	for _, event := range record.Events {
		args = append(args, event)
	}
	args = appendValues(args, c.Values)
	return append(args, k.Memory, k.Session), nil
}

// header returns the fields of an entry other than its message.
func header(e *store.Entry) string {
	return fmt.Sprint(e.Turn, e.Tokens, e.Time.UnixMicro(), flag(e.Status == store.Failed))
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// Delete removes a session with everything that belongs to it.
func (s *Store) Delete(ctx context.Context, k store.Key) error { return s.remove(ctx, k) }

// Remove deletes a session if its version is still version. If the connection
// breaks the driver tries again, so ErrConflict may mean that the first attempt
// succeeded.
func (s *Store) Remove(ctx context.Context, k store.Key, version int64) error {
	return s.remove(ctx, k, version)
}

// removedAtOnce is how many sessions one pipeline deletes.
const removedAtOnce = 1000

// RemoveAll deletes sessions in pipelines of many, each session only if it still has its
// version. One that was deleted by an attempt whose reply was lost may not be counted.
func (s *Store) RemoveAll(ctx context.Context, mem string, sessions []store.SessionHead) (removed int, err error) {
	return store.InBatches(sessions, removedAtOnce, func(batch []store.SessionHead) (int, error) { return s.removeBatch(ctx, mem, batch) })
}

// removeBatch sends the whole script for each session, not its digest, which a node of a
// cluster may not know: the commands of a pipeline cannot wait for each other's replies.
func (s *Store) removeBatch(ctx context.Context, mem string, sessions []store.SessionHead) (removed int, err error) {
	var members []any // of the deleted sessions, also by attempts that failed
	_, err = use(ctx, s, func(ctx context.Context, client redisclient.Client) (struct{}, error) {
		pipe := client.Pipeline()
		replies := make([]*driver.Cmd, len(sessions))
		for i := range sessions {
			k := store.Key{Memory: mem, Session: sessions[i].Session}
			replies[i] = deleteScript.Eval(ctx, pipe, s.names(k).slice(), sessions[i].Head.Version)
		}
		_, err := pipe.Exec(ctx)
		for i, r := range replies {
			if born, err := r.Int64(); err == nil && born > 0 {
				members = append(members, member(sessions[i].Session, born))
			}
		}
		if removed = len(members); removed > 0 {
			err = errors.Join(err, client.ZRem(ctx, s.list(mem), members...).Err())
		}
		return struct{}{}, err
	})
	return removed, err
}

// remove deletes a session; version is empty, or the one that it must have.
func (s *Store) remove(ctx context.Context, k store.Key, version ...any) error {
	_, err := use(ctx, s, func(ctx context.Context, client redisclient.Client) (struct{}, error) {
		born, err := deleteScript.Run(ctx, client, s.names(k).slice(), version...).Int64()
		switch {
		case err == nil && born < 0:
			err = store.ErrConflict
		case err == nil && born != 0:
			err = client.ZRem(ctx, s.list(k.Memory), member(k.Session, born)).Err()
		}
		return struct{}{}, err
	})
	return err
}
