package promptcontext

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// headValue is the value of a session with the summary and the facts as its system message has
// had them since messages left last. A memory that keeps context sends them so until the
// next messages leave; what is newer goes with the question.
const headValue = "head"

// headState is the stored form.
type headState struct {
	First  string                        `json:"first"` // id of the first message that was sent with it
	Blocks map[store.BlockKind]headBlock `json:"blocks"`
}

// headBlock is a block of the head.
type headBlock struct {
	Sent   string `json:"sent"`   // its lines in the system message
	Latest string `json:"latest"` // digest of the newest text that was sent, there or with a question
}

// headOf returns the head of a session; an empty one for none.
func headOf(h memory.Head) (s headState) {
	if raw := h.Values[headValue]; len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return headState{}
	}
	return s
}

// digest identifies the units of a block.
func digest(units []contextUnit) string {
	h := sha256.New()
	for _, u := range units {
		_, _ = h.Write([]byte(u.text + "\n")) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// keepHead makes a block what the head has of it, if the first message is still sent. It returns
// what is newer, to be sent with the question; nil for nothing.
func (t *turnContext) keepHead(p *blockContent, sent []*memory.Entry) *blockContent {
	if !t.session.KeepsContext() || p.block.Kind == Pinned || !p.block.stable() || len(sent) == 0 {
		return nil
	}
	head := t.head
	if head.First == "" {
		head = headOf(t.session.Head())
	}
	full := p.units
	p.latest = digest(full)
	known, found := head.Blocks[p.block.Kind]
	if !found || head.First != sent[0].Message.ID {
		if p.best {
			p.latest = "" // the system message has nothing of it
		}
		return nil
	}
	latest, best := p.latest, p.best
	p.latest, p.units, p.best = known.Latest, lineUnits(known.Sent), false
	if before := t.last(p.block, true); before != nil { // it stays in all calls of the turn
		return &blockContent{block: p.block, behind: true, best: before.best, units: before.all, latest: before.latest, through: before.through}
	}
	if latest == known.Latest || len(full) == 0 {
		return nil
	}
	return &blockContent{block: p.block, behind: true, best: best, units: full, latest: latest, through: p.through}
}

// last returns a part of the last call of the turn, nil for none.
func (t *turnContext) last(b *Block, behind bool) *blockContent {
	for i := range t.sent {
		if t.sent[i].block == b && t.sent[i].behind == behind {
			return &t.sent[i]
		}
	}
	return nil
}

// noteHead notes the head of a call.
func (t *turnContext) noteHead(parts []blockContent, sent []*memory.Entry) {
	if !t.session.KeepsContext() || len(sent) == 0 {
		return
	}
	t.head = headState{First: sent[0].Message.ID, Blocks: map[store.BlockKind]headBlock{}}
	for i := range parts {
		p := &parts[i]
		if p.latest == "" {
			continue
		}
		b := t.head.Blocks[p.block.Kind]
		b.Latest = p.latest // that of the part behind follows
		if !p.behind {
			b.Sent = strings.TrimPrefix(strings.TrimPrefix(p.text(), p.heading()), "\n")
		}
		t.head.Blocks[p.block.Kind] = b
	}
}

// Values returns the values of the session that a commit of the turn stores.
func (t *turnContext) Values() map[string][]byte {
	if t.head.First == "" || len(t.head.Blocks) == 0 {
		return nil
	}
	raw, err := json.Marshal(t.head)
	if err != nil { // texts only
		return nil
	}
	return map[string][]byte{headValue: raw}
}
