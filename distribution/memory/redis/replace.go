package redis

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	driver "github.com/redis/go-redis/v9"

	"github.com/qtype-dev/qtype/distribution/redisclient"
	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory/store"
)

// convertedAtOnce is how many messages one script moves from a stream to a list.
const convertedAtOnce = 1000

// convertScript copies messages of a session of format 1 from its stream to a list. The
// last call deletes the stream; until then the stream is complete, and readers and writers
// use it. A list that another session left is deleted first. It returns 0 if there is no
// such session, 1 if the session has a list, 2 if there are more messages, and 3 if the
// session is newer than this version.
//
// ARGV: format, number of messages.
var convertScript = driver.NewScript(`
local head = redis.call('HMGET', KEYS[1], 'format', 'converting')
if not head[1] then return 0 end
if tonumber(head[1]) > tonumber(ARGV[1]) then return 3 end
if head[1] ~= '1' then return 1 end
if not head[2] then
  redis.call('DEL', KEYS[5])
  redis.call('HSET', KEYS[1], 'converting', '1')
end
local last = redis.call('LINDEX', KEYS[5], -1)
local from = last and tonumber(string.match(last, '^%d+')) + 1 or 1
local items = redis.call('XRANGE', KEYS[2], from, '+', 'COUNT', ARGV[2])
for _, item in ipairs(items) do
  redis.call('RPUSH', KEYS[5], string.match(item[1], '^%d+') .. ' ' .. item[2][2] .. ' ' .. item[2][4])
end
if #items == tonumber(ARGV[2]) then return 2 end
redis.call('UNLINK', KEYS[2])
redis.call('HSET', KEYS[1], 'format', ARGV[1])
redis.call('HDEL', KEYS[1], 'converting')
return 1
`)

// missingRecord is the result of replaceScript if a record to be replaced does not exist.
const missingRecord = 5

// replaceScript replaces records, atomically: it looks at all of them before its first
// write. An entry keeps what its record has before the message.
//
// ARGV: format, version, next, own, then four counted lists: messages (seq, message),
// events (index, event), values to set (field, value), values to remove (field).
var replaceScript = driver.NewScript(`
local head = redis.call('HMGET', KEYS[1], 'version', 'format', 'change')
if head[2] and tonumber(head[2]) > tonumber(ARGV[1]) then return 3 end
if head[3] == ARGV[4] then return 1 end
if (head[1] or '0') ~= ARGV[2] or head[2] == '1' then return 0 end
local i = 5
local function each(width, act)
  local n = tonumber(ARGV[i])
  i = i + 1
  for _ = 1, n do
    act()
    i = i + width
  end
end
local fields, missing = {}, false
each(2, function()
  local old = redis.call('LINDEX', KEYS[5], tonumber(ARGV[i]) - 1)
  local kept = old and string.match(old, '^' .. ARGV[i] .. ' %d+ %-?%d+ %-?%d+ %d+ ')
  if kept then fields[ARGV[i]] = kept else missing = true end
end)
local events = redis.call('LLEN', KEYS[4])
each(2, function() if tonumber(ARGV[i]) >= events then missing = true end end)
if missing then return 5 end
i = 5
each(2, function() redis.call('LSET', KEYS[5], tonumber(ARGV[i]) - 1, fields[ARGV[i]] .. ARGV[i+1]) end)
each(2, function() redis.call('LSET', KEYS[4], ARGV[i], ARGV[i+1]) end)
each(2, function() redis.call('HSET', KEYS[1], ARGV[i], ARGV[i+1]) end)
each(1, function() redis.call('HDEL', KEYS[1], ARGV[i]) end)
redis.call('HSET', KEYS[1], 'version', ARGV[3], 'change', ARGV[4])
return 1
`)

// Replace replaces stored records by one script, if the session has the version. The
// messages of a session of format 1 become a list first.
func (s *Store) Replace(ctx context.Context, k store.Key, r store.Replacement) error {
	own := rand.Int64N(math.MaxInt64) + 1
	args, err := encodeReplacement(r, own)
	if err != nil {
		return err
	}
	_, err = use(ctx, s, func(ctx context.Context, client redisclient.Client) (struct{}, error) {
		if err := convert(ctx, s, client, k); err != nil {
			return struct{}{}, err
		}
		result, err := replaceScript.Run(ctx, client, s.names(k).slice(), args...).Int()
		if result == missingRecord {
			if repaired, failure := repair(ctx, s, client, k, 0, 0); failure != nil {
				return struct{}{}, failure
			} else if repaired {
				result, err = replaceScript.Run(ctx, client, s.names(k).slice(), args...).Int()
			}
		}
		switch {
		case err != nil || result == done:
			return struct{}{}, err
		case result == tooNew:
			return struct{}{}, s.tooNew()
		case result == missingRecord:
			return struct{}{}, s.server.Location.Error(store.Corrupt, "a record to be replaced does not exist", nil)
		}
		return struct{}{}, store.ErrConflict
	})
	return err
}

// convert makes a list of the stream of a session of format 1.
func convert(ctx context.Context, s *Store, client redisclient.Client, k store.Key) error {
	for {
		result, err := convertScript.Run(ctx, client, s.names(k).slice(), format, convertedAtOnce).Int()
		switch {
		case err != nil:
			return err
		case result == conflict:
			return store.ErrConflict
		case result == tooNew:
			return s.tooNew()
		case result == done:
			return nil
		}
	}
}

// encodeReplacement converts a replacement to the arguments of replaceScript.
func encodeReplacement(r store.Replacement, own int64) ([]any, error) {
	records, err := storage.EncodeReplacement(r)
	if err != nil {
		return nil, err
	}
	args := []any{format, r.Version, r.Next, own, len(records.Messages)}
	for seq, text := range records.Messages {
		args = append(args, seq, text)
	}
	args = append(args, len(records.Events))
	for i, text := range records.Events {
		if i < 0 {
			return nil, fmt.Errorf("event %d to be replaced does not exist", i)
		}
		args = append(args, i, text)
	}
	return appendValues(args, r.Values), nil
}

// appendValues appends the lists of values to set and to remove.
func appendValues(args []any, values map[string][]byte) []any {
	var set, unset []any
	for name, value := range values {
		if value == nil {
			unset = append(unset, valueField+name)
		} else {
			set = append(set, valueField+name, value)
		}
	}
	args = append(append(args, len(set)/2), set...)
	return append(append(args, len(unset)), unset...)
}
