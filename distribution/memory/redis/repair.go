package redis

import (
	"context"
	"fmt"

	driver "github.com/redis/go-redis/v9"

	"github.com/qtype-dev/qtype/distribution/redisclient"
	"github.com/qtype-dev/qtype/memory/store"
)

// A server that is killed while it appends a change to its file may keep the first commands of
// that change: before valkey-io/valkey#4342, it removes the command that is cut off, but not the
// MULTI before it. Its next restart then makes these commands together with the change that
// follows them in the file. Nobody was told that the messages of such a change are stored. They
// are in the list before those that have their positions, or after the last one that the head
// counts, and are removed when a writer or reader finds them.
//
// Each removal is one command, which is not in a MULTI: it is in the file as a whole, or not.

// repairScript removes one message that no change counts, and returns its record; an empty text
// if there is none.
//
// ARGV: format, version of the session and its last position, or 0 and 0: nothing is removed
// after the last position of a session with another version.
var repairScript = driver.NewScript(`
local head = redis.call('HMGET', KEYS[1], 'version', 'format')
if head[2] ~= ARGV[1] then return '' end
local function at(i)
  local record = redis.call('LINDEX', KEYS[5], i)
  return record and tonumber(string.match(record, '^(%d+) %d+ %-?%d+ %-?%d+ %d+ ')), record
end
local count = redis.call('LLEN', KEYS[5])
local last, record = at(-1)
if not last then return '' end
if head[1] == ARGV[2] and last > tonumber(ARGV[3]) then return redis.call('RPOP', KEYS[5]) end
if count <= last then return '' end
local low, high = 1, count - 1
while low < high do
  local middle = math.floor((low + high) / 2)
  local seq = at(middle)
  local right = seq and seq > middle
  low, high = right and middle + 1 or low, right and high or middle
end
local seq = at(low)
local before, record = at(low - 1)
if not seq or not before or seq > before then return '' end
redis.call('LREM', KEYS[5], 1, record)
return record
`)

// forgetScript removes the id of a message that was removed, unless the message that has its
// position now has the id, too. ARGV: id, position.
var forgetScript = driver.NewScript(`
if redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] then return 0 end
local record = redis.call('LINDEX', KEYS[5], tonumber(ARGV[2]) - 1)
if record and string.find(record, '"id":"' .. ARGV[1] .. '"', 1, true) then return 0 end
return redis.call('HDEL', KEYS[3], ARGV[1])
`)

// maxRepairs bounds the messages that are removed at a time.
const maxRepairs = 10_000

// repair removes the messages of a session that no change counts, and reports whether there were any.
func repair(ctx context.Context, s *Store, client redisclient.Client, k store.Key, version, last int64) (bool, error) {
	names := s.names(k).slice()
	for n := range maxRepairs {
		removed, err := repairScript.Run(ctx, client, names, format, version, last).Text()
		if err != nil || removed == "" {
			if n > 0 && s.warn != nil {
				s.warn(fmt.Sprintf("memory store %s was killed while it stored messages of session %q: %d of them, which were not acknowledged, were left and are removed", s.Location(), k.Session, n))
			}
			return n > 0, err
		}
		if e, _, err := s.entry(record(removed)); err == nil && e.Message.ID != "" {
			if err := forgetScript.Run(ctx, client, names, e.Message.ID, e.Seq).Err(); err != nil {
				return true, err
			}
		}
	}
	return true, nil
}
