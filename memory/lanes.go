package memory

import (
	"context"
	"slices"
	"sync"
)

// lanes let one turn of a session run at a time, in the order in which they
// came. A session that nobody uses takes no room. The zero value is ready.
type lanes struct {
	mu     sync.Mutex
	queues map[string][]chan struct{} // by session: those who wait; present while a turn runs
}

// enter waits for the session's turn. Where it returns nil, leave must follow.
func (l *lanes) enter(ctx context.Context, session string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	queue, busy := l.queues[session]
	if !busy {
		if l.queues == nil {
			l.queues = map[string][]chan struct{}{}
		}
		l.queues[session] = nil
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	l.queues[session] = append(queue, turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		l.giveUp(session, turn)
		return ctx.Err()
	}
}

// giveUp takes a waiter out of the queue, or passes on the turn that it was
// given in the same moment.
func (l *lanes) giveUp(session string, turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queues[session]
	if i := slices.Index(queue, turn); i >= 0 {
		l.queues[session] = slices.Delete(queue, i, i+1)
		return
	}
	l.next(session)
}

// leave ends the session's turn.
func (l *lanes) leave(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next(session)
}

func (l *lanes) next(session string) {
	queue := l.queues[session]
	if len(queue) == 0 {
		delete(l.queues, session)
		return
	}
	close(queue[0])
	queue[0] = nil
	l.queues[session] = queue[1:]
}
