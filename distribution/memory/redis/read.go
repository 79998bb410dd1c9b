package redis

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/redis/go-redis/v9"

	"github.com/qtype-dev/qtype/distribution/redisclient"
	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory/store"
)

// listPage is how many sessions or events are read at a time.
const listPage = 256

// Head returns the session's head.
func (s *Store) Head(ctx context.Context, k store.Key) (store.Head, error) {
	return use(ctx, s, func(ctx context.Context, client redisclient.Client) (store.Head, error) {
		fields, err := client.HGetAll(ctx, s.names(k).head).Result()
		if err != nil || len(fields) == 0 {
			return store.Head{}, err
		}
		head, err := s.head(fields["format"], fields["version"], fields["state"])
		if err != nil {
			return store.Head{}, err
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
	return use(ctx, s, func(ctx context.Context, client redisclient.Client) (time.Time, error) {
		return client.Time(ctx).Result()
	})
}

// head parses the fields that every head has.
func (s *Store) head(written, version, state string) (store.Head, error) {
	var h store.Head
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
func (s *Store) Entries(ctx context.Context, k store.Key, q store.Query) iter.Seq2[*store.Entry, error] {
	if q.IDs != nil && q.Live {
		return s.byID(ctx, k, q)
	}
	return storage.Entries(q, func(from int64, limit int) (storage.Page, error) {
		if q.To != 0 && from > q.To {
			return storage.Page{}, ctx.Err()
		}
		return use(ctx, s, func(ctx context.Context, client redisclient.Client) (storage.Page, error) {
			to := from + int64(limit) - 1
			if q.To != 0 {
				to = min(to, q.To)
			}
			found, err := readRange(ctx, s, client, k, from, to, limit)
			if err != nil {
				return storage.Page{}, err
			}
			return s.page(found, q)
		})
	})
}

// record is a stored entry in the form of the list of messages.
type record string

// seq returns the position of the entry, 0 if the record is malformed.
func (r record) seq() int64 {
	text, _, _ := strings.Cut(string(r), " ")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// toRecords returns the items of a list of messages.
func toRecords(items []string) []record {
	out := make([]record, len(items))
	for i, text := range items {
		out[i] = record(text)
	}
	return out
}

// recordsOf returns the items of a stream as records.
func recordsOf(items []driver.XMessage) []record {
	out := make([]record, len(items))
	for i, x := range items {
		seq, _, _ := strings.Cut(x.ID, "-")
		header, _ := x.Values["h"].(string)
		message, _ := x.Values["m"].(string)
		out[i] = record(seq + " " + header + " " + message)
	}
	return out
}

// readRange reads the entries from a position on up to another one, at most limit, in one
// round trip. The stream is empty unless the session has format 1.
func readRange(ctx context.Context, s *Store, client redisclient.Client, k store.Key, from, to int64, limit int) ([]record, error) {
	n := s.names(k)
	for {
		out, damaged, err := readList(ctx, client, n, from, to, limit)
		if err != nil || !damaged {
			return out, err
		}
		if repaired, err := repair(ctx, s, client, k, 0, 0); err != nil || !repaired {
			return out, err
		}
	}
}

// readList is readRange without a repair. The list is damaged if it has more records than positions.
func readList(ctx context.Context, client redisclient.Client, n names, from, to int64, limit int) (out []record, damaged bool, err error) {
	pipe := client.Pipeline()
	stream := pipe.XRangeN(ctx, n.stream, strconv.FormatInt(from, 10), strconv.FormatInt(to, 10), int64(limit))
	list := pipe.LRange(ctx, n.messages, from-1, to-1)
	last, count := pipe.LRange(ctx, n.messages, -1, -1), pipe.LLen(ctx, n.messages)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, false, err
	}
	if items := stream.Val(); len(items) > 0 {
		return recordsOf(items), false, nil
	}
	out = toRecords(list.Val())
	newest := toRecords(last.Val())
	if len(newest) > 0 && newest[0].seq() < count.Val() {
		damaged = true
	}
	if len(newest) > 0 && newest[0].seq() >= from && (len(out) == 0 || out[0].seq() != from) {
		out, err = search(ctx, client, n.messages, from, limit)
	}
	return out, damaged, err
}

// search finds the entries from a position on in a list in which entries are missing, so
// that the index of later ones is lower than their position.
func search(ctx context.Context, client redisclient.Client, list string, from int64, limit int) ([]record, error) {
	low, high := int64(0), from-1
	for low < high {
		middle := (low + high) / 2
		text, err := client.LIndex(ctx, list, middle).Result()
		if err != nil && !errors.Is(err, driver.Nil) {
			return nil, err
		}
		if err == nil && record(text).seq() < from {
			low = middle + 1
		} else {
			high = middle
		}
	}
	texts, err := client.LRange(ctx, list, low, low+int64(limit)-1).Result()
	return toRecords(texts), err
}

// page converts records and drops those that do not match q. Only tests look up failed
// messages by id, so a scan of the history is good enough for them.
func (s *Store) page(found []record, q store.Query) (storage.Page, error) {
	p := storage.Page{Rows: len(found)}
	for _, r := range found {
		e, size, err := s.entry(r)
		if err != nil {
			return p, err
		}
		p.Bytes += size
		p.Next = e.Seq + 1
		dropped := q.Live && e.Status == store.Failed || q.IDs != nil && !slices.Contains(q.IDs, e.Message.ID) || q.To != 0 && e.Seq > q.To
		if !dropped {
			p.Entries = append(p.Entries, e)
		}
	}
	return p, nil
}

// entry converts one record and returns the size of its message in bytes.
func (s *Store) entry(r record) (*store.Entry, int, error) {
	fields := strings.SplitN(string(r), " ", 6)
	if len(fields) < 6 {
		return nil, 0, s.server.Location.Corrupt(errors.New("a message without its fields"))
	}
	var numbers [5]int64
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return nil, 0, s.server.Location.Corrupt(err)
		}
	}
	e := &store.Entry{Seq: numbers[0], Turn: numbers[1], Tokens: int(numbers[2]), Time: time.UnixMicro(numbers[3]).UTC()}
	if numbers[4] != 0 {
		e.Status = store.Failed
	}
	message := fields[5]
	return e, len(message), s.server.Location.DecodeMessage(message, &e.Message)
}

// byID yields the live messages with q.IDs, which it finds in the session's hash of ids.
func (s *Store) byID(ctx context.Context, k store.Key, q store.Query) iter.Seq2[*store.Entry, error] {
	return func(yield func(*store.Entry, error) bool) {
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
func (s *Store) find(ctx context.Context, k store.Key, q store.Query) ([]int64, error) {
	var seqs []int64
	for ids := range slices.Chunk(q.IDs, listPage) {
		found, err := use(ctx, s, func(ctx context.Context, client redisclient.Client) ([]any, error) {
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
func (s *Store) readAt(ctx context.Context, k store.Key, seqs []int64) ([]*store.Entry, error) {
	return use(ctx, s, func(ctx context.Context, client redisclient.Client) ([]*store.Entry, error) {
		n := s.names(k)
		pipe := client.Pipeline()
		streams, lists := make([]*driver.XMessageSliceCmd, len(seqs)), make([]*driver.StringSliceCmd, len(seqs))
		for i, seq := range seqs {
			at := strconv.FormatInt(seq, 10)
			streams[i], lists[i] = pipe.XRange(ctx, n.stream, at, at), pipe.LRange(ctx, n.messages, seq-1, seq-1)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, err
		}
		var entries []*store.Entry
		for i, seq := range seqs {
			found := recordsOf(streams[i].Val())
			if texts := toRecords(lists[i].Val()); len(found) == 0 && len(texts) > 0 {
				if texts[0].seq() != seq { // others are missing, or the list is damaged
					var err error
					if texts, err = readRange(ctx, s, client, k, seq, seq, 1); err != nil {
						return nil, err
					}
				}
				if len(texts) > 0 && texts[0].seq() == seq {
					found = texts
				}
			}
			p, err := s.page(found, store.Query{Live: true})
			if err != nil {
				return nil, err
			}
			entries = append(entries, p.Entries...)
		}
		return entries, nil
	})
}

// Events yields the session's events.
func (s *Store) Events(ctx context.Context, k store.Key) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		for from := int64(0); ; from += listPage {
			events, err := s.eventsBetween(ctx, k, from, from+listPage-1)
			if !storage.YieldAll(yield, events, err) || len(events) < listPage {
				return
			}
		}
	}
}

// EventsReversed yields the session's events, newest first.
func (s *Store) EventsReversed(ctx context.Context, k store.Key) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		n, err := use(ctx, s, func(ctx context.Context, client redisclient.Client) (int64, error) {
			return client.LLen(ctx, s.names(k).events).Result()
		})
		if err != nil {
			yield(store.Event{}, err)
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

func (s *Store) eventsBetween(ctx context.Context, k store.Key, from, to int64) ([]store.Event, error) {
	return use(ctx, s, func(ctx context.Context, client redisclient.Client) ([]store.Event, error) {
		texts, err := client.LRange(ctx, s.names(k).events, from, to).Result()
		if err != nil {
			return nil, err
		}
		events := make([]store.Event, len(texts))
		for i, text := range texts {
			if err := s.server.Location.Decode(text, &events[i]); err != nil {
				return nil, err
			}
		}
		return events, nil
	})
}

// Sessions yields the sessions of one memory.
func (s *Store) Sessions(ctx context.Context, mem string) iter.Seq2[store.SessionHead, error] {
	return s.sessions(ctx, mem, "-", "+")
}

// ListSessions returns a page of the sessions of one memory, a range of its sorted set.
func (s *Store) ListSessions(ctx context.Context, mem string, q store.SessionQuery) ([]store.SessionHead, error) {
	from, to := q.Bounds()
	last := "+"
	if to != "" {
		last = "(" + escaped(to)
	}
	var out []store.SessionHead
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
func (s *Store) sessions(ctx context.Context, mem, after, last string) iter.Seq2[store.SessionHead, error] {
	return func(yield func(store.SessionHead, error) bool) {
		for {
			members, err := use(ctx, s, func(ctx context.Context, client redisclient.Client) ([]string, error) {
				return client.ZRangeByLex(ctx, s.list(mem), &driver.ZRangeBy{Min: after, Max: last, Count: listPage}).Result()
			})
			if err != nil {
				yield(store.SessionHead{}, err)
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
func (s *Store) heads(ctx context.Context, mem string, members []string) ([]store.SessionHead, error) {
	return use(ctx, s, func(ctx context.Context, client redisclient.Client) ([]store.SessionHead, error) {
		pipe := client.Pipeline()
		replies := make([]*driver.SliceCmd, len(members))
		for i, m := range members {
			session, _ := sessionOf(m)
			replies[i] = pipe.HMGet(ctx, s.names(store.Key{Memory: mem, Session: session}).head, "format", "version", "state", "born")
		}
		if len(members) > 0 {
			if _, err := pipe.Exec(ctx); err != nil {
				return nil, err
			}
		}
		var listed []store.SessionHead
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
			listed = append(listed, store.SessionHead{Session: session, Head: head})
		}
		return listed, nil
	})
}
