package memory

import "context"

// chunk is how many entries are read at a time, further and further back.
const chunk = 256

// extendBack is v with as much more of the history as a round_window needs under
// limits that were raised: a read may ask for more rounds or more characters
// than the writes kept at hand (reference memory.md 5.6).
func (m *Memory) extendBack(ctx context.Context, key Key, v *view, p evictionPolicy) (*view, error) {
	r, ok := p.(*rounds)
	if !ok {
		return v, nil
	}
	back := int64(chunk)
	for !r.covers(v) {
		wide := m.emptyView()
		wide.version, wide.state, wide.values, wide.system, wide.brought = v.version, v.state, v.values, v.system, v.brought
		wide.begin = max(v.begin-back, v.minSeq())
		back *= 2
		if err := m.readEntries(ctx, key, wide); err != nil {
			return nil, err
		}
		v = wide
	}
	return v, nil
}

// minSeq is the first Seq that the window may ever hold.
func (v *view) minSeq() int64 { return max(v.state.Floor, 1) }

// covers tells whether the view holds all that a read may want: everything that
// there is, more rounds than asked for, or more characters.
func (p *rounds) covers(v *view) bool {
	if v.begin <= v.minSeq() {
		return true
	}
	count := v.rounds()
	whole := len(v.entries) > 0 && isUser(v.entries[0]) // the first round is
	return count > p.most || count == p.most && whole || v.chars > p.max
}
