package redis

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/redis/go-redis/v9"

	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory"
)

// listPage is how many sessions or events are read at a time.
const listPage = 256

// Head returns the session's head.
func (s *Store) Head(ctx context.Context, k memory.Key) (memory.Head, error) {
	return use(ctx, s, func(ctx context.Context, client driver.UniversalClient) (memory.Head, error) {
		fields, err := client.HGetAll(ctx, s.names(k).head).Result()
		if err != nil || len(fields) == 0 {
			return memory.Head{}, err
		}
		head, err := s.head(fields["format"], fields["version"], fields["state"])
		if err != nil {
			return memory.Head{}, err
		}
		for field, value := range fields {
			if name, ok := strings.CutPrefix(field, valueField); ok {
				if head.Values == nil {
					head.Values = map[string][]byte{}
				}
				head.Values[name] = []byte(value)
			}
		}
		return head, nil
	})
}

// Time returns the time of the server.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	return use(ctx, s, func(ctx context.Context, client driver.UniversalClient) (time.Time, error) {
		return client.Time(ctx).Result()
	})
}

// head parses the fields that every head has.
func (s *Store) head(written, version, state string) (memory.Head, error) {
	var h memory.Head
	n, err := strconv.Atoi(written)
	if err != nil {
		return h, s.server.Location.Corrupt(err)
	}
	if n > format {
		return h, s.tooNew()
	}
	if h.Version, err = strconv.ParseInt(version, 10, 64); err != nil {
		return h, s.server.Location.Corrupt(err)
	}
	return h, s.server.Location.Decode(state, &h.State)
}

// Entries yields entries page by page.
func (s *Store) Entries(ctx context.Context, k memory.Key, q memory.Query) iter.Seq2[*memory.Entry, error] {
	if q.IDs != nil && q.Live {
		return s.byID(ctx, k, q)
	}
	to := "+"
	if q.To != 0 {
		to = strconv.FormatInt(q.To, 10)
	}
	return storage.Entries(q, func(from int64, limit int) (storage.Page, error) {
		if q.To != 0 && from > q.To {
			return storage.Page{}, ctx.Err()
		}
		return use(ctx, s, func(ctx context.Context, client driver.UniversalClient) (storage.Page, error) {
			found, err := client.XRangeN(ctx, s.names(k).entries, strconv.FormatInt(from, 10), to, int64(limit)).Result()
			if err != nil {
				return storage.Page{}, err
			}
			return s.page(found, q)
		})
	})
}

// page converts items of a stream and drops those that do not match q. Only tests
// look up failed messages by id, so a scan of the history is good enough for them.
func (s *Store) page(found []driver.XMessage, q memory.Query) (storage.Page, error) {
	p := storage.Page{Rows: len(found)}
	for _, x := range found {
		e, size, err := s.entry(x)
		if err != nil {
			return p, err
		}
		p.Bytes += size
		p.Next = e.Seq + 1
		dropped := q.Live && e.Status == memory.Failed || q.IDs != nil && !slices.Contains(q.IDs, e.Message.ID)
		if !dropped {
			p.Entries = append(p.Entries, e)
		}
	}
	return p, nil
}

// entry converts one item of a stream and returns the size of its message in bytes.
func (s *Store) entry(x driver.XMessage) (*memory.Entry, int, error) {
	e := &memory.Entry{}
	seq, _, _ := strings.Cut(x.ID, "-")
	header, _ := x.Values["h"].(string)
	message, _ := x.Values["m"].(string)
	var micros int64
	var failed int
	_, err := fmt.Sscan(seq+" "+header, &e.Seq, &e.Turn, &e.Tokens, &micros, &failed)
	if err != nil {
		return nil, 0, s.server.Location.Corrupt(err)
	}
	e.Time = time.UnixMicro(micros).UTC()
	if failed != 0 {
		e.Status = memory.Failed
	}
	return e, len(message), s.server.Location.Decode(message, &e.Message)
}

// byID yields the live messages with q.IDs, which it finds in the session's hash of ids.
func (s *Store) byID(ctx context.Context, k memory.Key, q memory.Query) iter.Seq2[*memory.Entry, error] {
	return func(yield func(*memory.Entry, error) bool) {
		seqs, err := s.find(ctx, k, q)
		if err != nil {
			yield(nil, err)
			return
		}
		for part := range slices.Chunk(seqs, listPage) {
			entries, err := s.readAt(ctx, k, part)
			if !storage.YieldAll(yield, entries, err) {
				return
			}
		}
	}
}

// find returns the Seqs of the live messages with q.IDs, in order.
func (s *Store) find(ctx context.Context, k memory.Key, q memory.Query) ([]int64, error) {
	var seqs []int64
	for ids := range slices.Chunk(q.IDs, listPage) {
		found, err := use(ctx, s, func(ctx context.Context, client driver.UniversalClient) ([]any, error) {
			return client.HMGet(ctx, s.names(k).ids, ids...).Result()
		})
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			text, ok := one.(string)
			if !ok {
				continue // no such message
			}
			seq, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, s.server.Location.Corrupt(err)
			}
			if seq >= q.From && (q.To == 0 || seq <= q.To) {
				seqs = append(seqs, seq)
			}
		}
	}
	slices.Sort(seqs)
	return slices.Compact(seqs), nil
}

// readAt reads single entries, in one round trip.
func (s *Store) readAt(ctx context.Context, k memory.Key, seqs []int64) ([]*memory.Entry, error) {
	return use(ctx, s, func(ctx context.Context, client driver.UniversalClient) ([]*memory.Entry, error) {
		pipe := client.Pipeline()
		replies := make([]*driver.XMessageSliceCmd, len(seqs))
		for i, seq := range seqs {
			at := strconv.FormatInt(seq, 10)
			replies[i] = pipe.XRange(ctx, s.names(k).entries, at, at)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, err
		}
		var entries []*memory.Entry
		for _, r := range replies {
			p, err := s.page(r.Val(), memory.Query{Live: true})
			if err != nil {
				return nil, err
			}
			entries = append(entries, p.Entries...)
		}
		return entries, nil
	})
}

// Events yields the session's events.
func (s *Store) Events(ctx context.Context, k memory.Key) iter.Seq2[memory.Event, error] {
	return func(yield func(memory.Event, error) bool) {
		for from := int64(0); ; from += listPage {
			events, err := s.eventsBetween(ctx, k, from, from+listPage-1)
			if !storage.YieldAll(yield, events, err) || len(events) < listPage {
				return
			}
		}
	}
}

// EventsReversed yields the session's events, newest first.
func (s *Store) EventsReversed(ctx context.Context, k memory.Key) iter.Seq2[memory.Event, error] {
	return func(yield func(memory.Event, error) bool) {
		n, err := use(ctx, s, func(ctx context.Context, client driver.UniversalClient) (int64, error) {
			return client.LLen(ctx, s.names(k).events).Result()
		})
		if err != nil {
			yield(memory.Event{}, err)
			return
		}
		for ; n > 0; n -= listPage {
			events, err := s.eventsBetween(ctx, k, max(n-listPage, 0), n-1)
			slices.Reverse(events)
			if !storage.YieldAll(yield, events, err) {
				return
			}
		}
	}
}

func (s *Store) eventsBetween(ctx context.Context, k memory.Key, from, to int64) ([]memory.Event, error) {
	return use(ctx, s, func(ctx context.Context, client driver.UniversalClient) ([]memory.Event, error) {
		texts, err := client.LRange(ctx, s.names(k).events, from, to).Result()
		if err != nil {
			return nil, err
		}
		events := make([]memory.Event, len(texts))
		for i, text := range texts {
			if err := s.server.Location.Decode(text, &events[i]); err != nil {
				return nil, err
			}
		}
		return events, nil
	})
}

// Sessions yields the sessions of one memory.
func (s *Store) Sessions(ctx context.Context, mem string) iter.Seq2[memory.SessionHead, error] {
	return s.sessions(ctx, mem, "-", "+")
}

// ListSessions returns a page of the sessions of one memory, a range of its sorted set.
func (s *Store) ListSessions(ctx context.Context, mem string, q memory.SessionQuery) ([]memory.SessionHead, error) {
	from, to := q.Bounds()
	last := "+"
	if to != "" {
		last = "(" + escaped(to)
	}
	var out []memory.SessionHead
	for l, err := range s.sessions(ctx, mem, "["+escaped(from), last) {
		if err != nil {
			return nil, err
		}
		if out = append(out, l); len(out) == q.Limit {
			break
		}
	}
	return out, nil
}

// sessions yields the sessions of a range of members.
func (s *Store) sessions(ctx context.Context, mem, after, last string) iter.Seq2[memory.SessionHead, error] {
	return func(yield func(memory.SessionHead, error) bool) {
		for {
			members, err := use(ctx, s, func(ctx context.Context, client driver.UniversalClient) ([]string, error) {
				return client.ZRangeByLex(ctx, s.list(mem), &driver.ZRangeBy{Min: after, Max: last, Count: listPage}).Result()
			})
			if err != nil {
				yield(memory.SessionHead{}, err)
				return
			}
			listed, err := s.heads(ctx, mem, members)
			if !storage.YieldAll(yield, listed, err) || len(members) < listPage {
				return
			}
			after = "(" + members[len(members)-1]
		}
	}
}

// heads reads the heads of sessions, given as members of the list, in one round
// trip. It drops members without a session, and those of an earlier session with
// the same id.
func (s *Store) heads(ctx context.Context, mem string, members []string) ([]memory.SessionHead, error) {
	return use(ctx, s, func(ctx context.Context, client driver.UniversalClient) ([]memory.SessionHead, error) {
		pipe := client.Pipeline()
		replies := make([]*driver.SliceCmd, len(members))
		for i, m := range members {
			session, _ := sessionOf(m)
			replies[i] = pipe.HMGet(ctx, s.names(memory.Key{Memory: mem, Session: session}).head, "format", "version", "state", "born")
		}
		if len(members) > 0 {
			if _, err := pipe.Exec(ctx); err != nil {
				return nil, err
			}
		}
		var listed []memory.SessionHead
		for i, r := range replies {
			var fields [4]string
			for n, field := range r.Val() {
				fields[n], _ = field.(string)
			}
			session, ok := sessionOf(members[i])
			born, err := strconv.ParseInt(fields[3], 10, 64)
			if err != nil || !ok || members[i] != member(session, born) {
				continue
			}
			head, err := s.head(fields[0], fields[1], fields[2])
			if err != nil {
				return nil, err
			}
			listed = append(listed, memory.SessionHead{Session: session, Head: head})
		}
		return listed, nil
	})
}
