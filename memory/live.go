package memory

import (
	"container/list"
	"sync"
)

const (
	defaultLive = 1024
	// maxLiveBytes bounds what the live windows of one memory hold together.
	maxLiveBytes = 64 << 20
)

// live keeps the views of the sessions that were used last, so that an append
// need not read the window again. It is bounded in sessions and in bytes.
type live struct {
	mu     sync.Mutex
	most   int // sessions
	bytes  int // in all views
	byKey  map[Key]*list.Element
	recent list.List // of *kept, the newest first
}

type kept struct {
	key  Key
	view *view
}

func newLive(most int) *live {
	if most == 0 {
		most = defaultLive
	}
	return &live{most: most, byKey: map[Key]*list.Element{}}
}

func (l *live) get(key Key) *view {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, found := l.byKey[key]
	if !found {
		return nil
	}
	l.recent.MoveToFront(at)
	return at.Value.(*kept).view
}

func (l *live) put(key Key, v *view) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, found := l.byKey[key]; found {
		k := at.Value.(*kept)
		l.bytes += v.bytes - k.view.bytes
		k.view = v
		l.recent.MoveToFront(at)
	} else {
		l.byKey[key] = l.recent.PushFront(&kept{key: key, view: v})
		l.bytes += v.bytes
	}
	for l.recent.Len() > l.most || l.bytes > maxLiveBytes && l.recent.Len() > 1 {
		l.remove(l.recent.Back())
	}
}

func (l *live) drop(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, found := l.byKey[key]; found {
		l.remove(at)
	}
}

func (l *live) remove(at *list.Element) {
	k := l.recent.Remove(at).(*kept)
	l.bytes -= k.view.bytes
	delete(l.byKey, k.key)
}
