package runtime

import (
	"crypto/sha256"
	"sync"

	"github.com/qtype-dev/qtype/steps"
)

// segmentCheckpoint is what one leg needs to keep rows and to find kept ones.
type segmentCheckpoint struct {
	keeper Checkpointer
	flow   *flow
	leg    int
	ends   []int                 // the slots that are read behind the leg
	key    rowEncoder            // writes what a digest is of
	same   map[CheckpointKey]int // how often a row of one content has come, of those that came from many
	here   map[CheckpointKey]int // likewise, of those that came from the input row of the newest
	number int64                 // of that input row

	mu    sync.Mutex
	marks map[int64]CheckpointKey // rows on their way, by place
}

// newSegmentCheckpoint is what a leg needs to keep its rows.
func (r *run) newSegmentCheckpoint(leg int) *segmentCheckpoint {
	k := &segmentCheckpoint{keeper: r.keeper, flow: r.flow, leg: leg, ends: r.flow.liveSlots(leg + 1), marks: map[int64]CheckpointKey{}}
	if leg > 0 {
		k.key = rowEncoder{slots: r.flow.liveSlots(leg), anonymous: true}
		k.same, k.here = map[CheckpointKey]int{}, map[CheckpointKey]int{}
	}
	return k
}

// replay hands on what became of a row in an earlier run; where that is not known
// it keeps the row's mark until the row is finished.
func (k *segmentCheckpoint) replay(row *steps.Row, push steps.Emit) (known bool, err error) {
	mark := k.mark(row)
	from := rowDecoder{slots: k.ends}
	known, err = k.keeper.Kept(mark, func(data []byte) error {
		kept := k.flow.newRow("", 0)
		if err := from.row(data, kept); err != nil {
			return err
		}
		kept.Place, kept.Done = row.Place, true
		return push(kept)
	})
	if !known && err == nil {
		k.mu.Lock()
		k.marks[row.Place] = mark
		k.mu.Unlock()
	}
	return known, err
}

// mark names a row. On another leg than 0 a row is named by what it holds,
// because failed rows that are done again, or groups that waited only so long, change
// how many rows come before it.
func (k *segmentCheckpoint) mark(row *steps.Row) CheckpointKey {
	if k.leg == 0 {
		return CheckpointKey{Row: row.Number}
	}
	k.key.reset()
	m := CheckpointKey{Leg: k.leg}
	sum := sha256.Sum256(k.key.row(nil, row))
	copy(m.Digest[:], sum[:])
	same := k.same
	if row.Number > 0 {
		if same = k.here; row.Number != k.number { // the rows of one input row follow each other
			k.number = row.Number
			clear(k.here)
		}
	}
	n := same[m]
	same[m] = n + 1
	for i := range 8 {
		m.Digest[i] ^= byte(n >> (8 * i))
	}
	return m
}

// pendingKey is the mark of a row whose results come now; false for one without.
func (k *segmentCheckpoint) pendingKey(place int64) (CheckpointKey, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m, ok := k.marks[place]
	delete(k.marks, place)
	return m, ok
}
