package temporal

import (
	"context"
	"slices"
)

// attemptList is the attempts to run all rows of a run in one activity. Each has a segment of the journal, in the order of their
// starts, and a blob with what it has read of the segments before. What an earlier attempt adds later, because its worker
// was frozen or cut off, is not valid, and it does nothing more.
type attemptList struct {
	blobs  *blobs
	folder string // of the run
	own    string // the segment of this attempt; empty if it only reads

	all  []string               // the segments of the attempts before
	read map[string]attemptNote // by segment
	seen map[string]int         // valid entries, by segment
}

// attemptNote is what an attempt has read.
type attemptNote struct {
	HasRead bool           // all of the segments before
	Seen    map[string]int // valid entries, by segment
}

// begin tells earlier attempts that there is another one, and reads which they are.
func (a *attemptList) begin(ctx context.Context) error {
	if err := a.blobs.write(ctx, attemptName(a.folder, a.own), attemptNote{}); err != nil {
		return err
	}
	return a.find(ctx)
}

// find reads which attempts there are.
func (a *attemptList) find(ctx context.Context) error {
	names, err := a.blobs.list(ctx, attemptsName(a.folder))
	if err != nil {
		return err
	}
	a.read = map[string]attemptNote{}
	for _, name := range names {
		switch {
		case name == a.own:
			continue
		case a.own != "" && name > a.own:
			return errLost
		}
		var was attemptNote
		if err := a.blobs.read(ctx, attemptName(a.folder, name), &was); err != nil {
			return err
		}
		a.all, a.read[name] = append(a.all, name), was
	}
	return nil
}

// replay calls take with the valid entries of the attempts before.
func (a *attemptList) replay(ctx context.Context, take func(*entry)) error {
	a.seen = map[string]int{}
	return a.blobs.readJournals(ctx, callsName(a.folder, 0, 0), func(e *entry) {
		if slices.Contains(a.all, e.segment) && a.isValid(e.segment) {
			a.seen[e.segment]++
			take(e)
		}
	})
}

// isValid reports whether the next entry of a segment was there when each later attempt has read it.
func (a *attemptList) isValid(segment string) bool {
	for _, later := range a.all {
		if was := a.read[later]; later > segment && was.HasRead && was.Seen[segment] <= a.seen[segment] {
			return false
		}
	}
	return true
}

// confirm stores what this attempt has read.
func (a *attemptList) confirm(ctx context.Context) error {
	return a.blobs.write(ctx, attemptName(a.folder, a.own), attemptNote{HasRead: true, Seen: a.seen})
}

// check returns errLost if another attempt has begun.
func (a *attemptList) check(ctx context.Context) error {
	names, err := a.blobs.list(ctx, attemptsName(a.folder))
	if err == nil && len(names) > 0 && names[len(names)-1] > a.own {
		err = errLost
	}
	return err
}
