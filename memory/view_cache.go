package memory

import (
	"container/list"
	"math"
	"sync"
)

const (
	defaultLive = 1024
	// maxLiveBytes bounds what the live windows of one memory hold together.
	maxLiveBytes = 64 << 20
)

// viewCache keeps the views of the sessions that were used last, so that an append
// need not read the window again. It is bounded in sessions and in bytes.
type viewCache struct {
	mu     sync.Mutex
	most   int // sessions
	bytes  int // in all views
	byKey  map[Key]*list.Element
	recent list.List // of *kept, the newest first
}

type cacheEntry struct {
	key  Key
	view *view
}

func newViewCache(most int) *viewCache {
	if most == 0 {
		most = defaultLive
	}
	return &viewCache{most: most, byKey: map[Key]*list.Element{}}
}

func (l *viewCache) get(key Key) *view {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, found := l.byKey[key]
	if !found {
		return nil
	}
	l.recent.MoveToFront(at)
	return at.Value.(*cacheEntry).view
}

func (l *viewCache) put(key Key, v *view) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, found := l.byKey[key]; found {
		k := at.Value.(*cacheEntry)
		l.bytes += v.bytes - k.view.bytes
		k.view = v
		l.recent.MoveToFront(at)
	} else {
		l.byKey[key] = l.recent.PushFront(&cacheEntry{key: key, view: v})
		l.bytes += v.bytes
	}
	for l.recent.Len() > l.most || l.bytes > maxLiveBytes && l.recent.Len() > 1 && l.most < math.MaxInt {
		l.remove(l.recent.Back())
	}
}

func (l *viewCache) drop(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, found := l.byKey[key]; found {
		l.remove(at)
	}
}

func (l *viewCache) remove(at *list.Element) {
	k := l.recent.Remove(at).(*cacheEntry)
	l.bytes -= k.view.bytes
	delete(l.byKey, k.key)
}
