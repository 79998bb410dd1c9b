package budget

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
)

// Disproved is the Limit of a model whose reported context window was wrong.
const Disproved = -1

// CalibrationValue is the value of a session with its factors, as JSON.
const CalibrationValue = "calibration"

const (
	maxFactor     = 4  // the highest factor: a wrong report must not empty the window
	maxCalibrated = 16 // models per session with a factor
	maxGuess      = 10 // turns in which a guess is used
	templateRoom  = 32 // tokens that the template of a chat adds to any request
)

// Correction is what the calls of a session have shown of one model.
type Correction struct {
	// Factor is the tokens of a request as the provider counts them, divided by the
	// estimate. It never decreases and is between 1 and maxFactor; 0 if it is unknown.
	Factor float64 `json:"factor,omitempty"`
	// Limit is the context window that the provider reported when it rejected a request, 0 if unknown,
	// Disproved if a later request with more tokens was accepted.
	Limit int `json:"limit,omitempty"`
	// Refused is the size of the smallest request, as this memory estimates it, that the provider
	// rejected without naming a limit; 0 if there is none, Disproved if a request of this size
	// was accepted since.
	Refused int `json:"refused,omitempty"`
	// Accepted is the size of the largest request below Refused that the provider accepted since,
	// 0 if there is none.
	Accepted int `json:"accepted,omitempty"`
	// Guess is for how many more turns Refused is used, if the provider gave no reason for its
	// rejection; 0 if it is no guess.
	Guess int `json:"guess,omitempty"`
}

// bound returns how large a request may be by what was rejected and accepted, 0 for any
// size: sizes between the two are tried until they are close.
func (c Correction) bound() int {
	const close = 16 // a 16th
	switch gap := c.Refused - c.Accepted; {
	case c.Refused <= 0:
		return 0
	case c.Accepted == 0:
		return c.Refused - 1
	case gap <= c.Refused/close:
		return c.Accepted
	default:
		return c.Accepted + gap/2
	}
}

// Bound returns how large requests of a model may be, as the memory estimates them, by what
// the provider rejected without naming a limit; 0 for any size. A guess is not used if an accepted
// request, of any session, was as large.
func (f Factors) Bound(model string, accepted int) int {
	c := f[model]
	if c.Guess > 0 && accepted >= c.Refused {
		return 0
	}
	return c.bound()
}

// WasRefused returns what the rejection of a request of an estimated size shows.
func (f Factors) WasRefused(model string, estimate int) Factors {
	c := Correction{Refused: estimate, Accepted: f[model].Accepted}
	if c.Accepted >= estimate {
		c.Accepted = 0
	}
	return Factors{model: c}
}

// WasSuspected is WasRefused for a rejection without a reason: a guess.
func (f Factors) WasSuspected(model string, estimate int) Factors {
	refused := f.WasRefused(model, estimate)[model]
	refused.Guess = maxGuess
	return Factors{model: refused}
}

// Aged returns a guess that is used for one turn less than at the turn's begin, nil if there is
// none. After the last turn larger requests are sent again.
func (f Factors) Aged(begin Factors, model string) Factors {
	c, guess := f[model], begin[model].Guess
	switch {
	case guess == 0 || c.Guess != guess: // also if this turn has done so
		return nil
	case guess == 1:
		return Factors{model: {Refused: Disproved}}
	}
	return Factors{model: {Refused: c.Refused, Accepted: c.Accepted, Guess: guess - 1}}
}

// WasAccepted returns what the answer to a request of an estimated size shows, nil for
// nothing new.
func (f Factors) WasAccepted(model string, estimate int) Factors {
	c := f[model]
	switch {
	case c.Refused <= 0 || estimate <= c.Accepted:
		return nil
	case estimate >= c.Refused:
		return Factors{model: {Refused: Disproved}}
	}
	return Factors{model: {Refused: c.Refused, Accepted: estimate, Guess: c.Guess}}
}

// Sizes are the largest estimated sizes of requests that providers accepted, by their
// names of the models. The zero value knows none; it is safe for concurrent use.
type Sizes struct {
	mu   sync.Mutex
	most map[string]int
}

// Note notes an accepted request.
func (s *Sizes) Note(model string, estimate int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most == nil {
		s.most = map[string]int{}
	}
	s.most[model] = max(s.most[model], estimate)
}

// Most returns the size of the largest accepted request of a model, 0 for none.
func (s *Sizes) Most(model string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most[model]
}

// Factors holds corrections by the provider's name of the model.
type Factors map[string]Correction

// FactorsOf returns the factors of a session. A value that cannot be read is ignored:
// the next report replaces it.
func FactorsOf(values map[string][]byte) Factors {
	raw, stored := values[CalibrationValue]
	if !stored { // as in most sessions
		return nil
	}
	var f Factors
	_ = json.Unmarshal(raw, &f)
	return f
}

// Decoded keeps the factors of a session that it has decoded, because a turn asks for them several times.
// The zero value is ready to use. It is not safe for concurrent use.
type Decoded struct {
	raw     []byte
	factors Factors
}

// Of is FactorsOf. The caller must not change the result.
func (d *Decoded) Of(values map[string][]byte) Factors {
	raw := values[CalibrationValue]
	if len(raw) == 0 {
		return nil
	}
	if len(raw) != len(d.raw) || &raw[0] != &d.raw[0] {
		d.raw, d.factors = raw, FactorsOf(values)
	}
	return d.factors
}

// Raised returns f with the factors of others that are higher, and their limits. It is f
// itself if others has nothing new.
func (f Factors) Raised(others Factors) Factors {
	if len(others) == 0 {
		return f
	}
	var room [maxCalibrated]string
	models := room[:0] // in a fixed order, because not all may have room
	for model := range others {
		models = append(models, model)
	}
	slices.Sort(models)
	out, copied := f, false
	for _, model := range models {
		before, known := out[model]
		c := before.raised(others[model])
		if known && c == before || !known && len(out) == maxCalibrated {
			continue
		}
		if !copied {
			if out, copied = maps.Clone(f), true; out == nil {
				out = Factors{}
			}
		}
		out[model] = c
	}
	return out
}

// raised returns c with the factor of another one if that is higher, and its limits.
func (c Correction) raised(other Correction) Correction {
	c.Factor = max(c.Factor, other.Factor)
	if other.Limit != 0 {
		c.Limit = other.Limit
	}
	if other.Refused != 0 {
		c.Refused, c.Accepted, c.Guess = other.Refused, other.Accepted, other.Guess
	}
	return c
}

// Measured returns the factors of a request of a model that has an estimate and counted
// tokens by the provider's count.
func Measured(model string, estimate, counted int) Factors {
	factor := min(max(float64(counted-templateRoom)/float64(estimate), 1), maxFactor)
	return Factors{model: {Factor: math.Ceil(factor*1000) / 1000}}
}

// Of returns the factor of a model, 1 if the provider has counted nothing yet, and
// the tokens that are left for the template.
func (f Factors) Of(model string) (factor float64, reserve int) {
	known := f[model].Factor
	if known < 1 || math.IsNaN(known) {
		return 1, 0
	}
	return min(known, maxFactor), templateRoom
}

// Within returns the budget with the context window that the provider reported, if it is smaller.
func (f Factors) Within(b Budget) Budget {
	if limit := f[b.Model].Limit; limit > 0 && (b.ContextWindow <= 0 || limit < b.ContextWindow) {
		b.declared, b.learned, b.ContextWindow = b.ContextWindow, true, limit
	}
	return b
}

// InputRoom returns how many tokens, as this memory counts them, the input of a call may
// have; it is negative if there is no room.
func (f Factors) InputRoom(b Budget) int {
	factor, reserve := f.Of(b.Model)
	return int(math.Floor(float64(b.ContextWindow-b.Answer-reserve) / factor))
}

// MostRoom is InputRoom for the newest round, which is sent if the context window that the document
// declares has room for it: what an error of the provider reported may be wrong, or no longer hold.
func (f Factors) MostRoom(b Budget) int {
	if b.learned {
		b.ContextWindow = b.declared
	}
	if b.ContextWindow <= 0 {
		return math.MaxInt / 2
	}
	return f.InputRoom(b)
}

// Uncounted returns the tokens that are left free because the provider has not counted
// some of the entries: all of them before its first report, afterwards those since the
// answer before the turn, whose first entry is own.
func (f Factors) Uncounted(b Budget, entries []*store.Entry, own int) int {
	known := f[b.Model].Factor
	margin := b.Margin / max(known, 1)
	if margin <= 1 {
		return 0
	}
	if known > 0 {
		entries = entries[min(max(own-1, 0), len(entries)):]
	}
	return int(math.Ceil(float64(window.SumTokens(entries)) * (margin - 1)))
}
