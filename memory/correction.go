package memory

import (
	"encoding/json"
	"maps"
	"slices"
)

const (
	calibrationValue = "calibration" // the value with the factors of a session, as JSON

	maxFactor     = 4  // the highest factor: a wrong report must not empty the window
	maxCalibrated = 16 // models per session with a factor
	templateRoom  = 32 // tokens that the template of a chat adds to any request
)

// correction is what the calls of a session have shown of one model.
type correction struct {
	// Factor is the tokens of a request as the provider counts them, divided by the
	// estimate. It never decreases and is between 1 and maxFactor; 0 if it is unknown.
	Factor float64 `json:"factor,omitempty"`
	// Limit is the context window that the provider reported when it rejected a request, 0 if unknown.
	Limit int `json:"limit,omitempty"`
}

// factors holds corrections by the provider's name of the model.
type factors map[string]correction

// factorsOf returns the factors of a session. A value that cannot be read is ignored:
// the next report replaces it.
func factorsOf(values map[string][]byte) factors {
	raw, stored := values[calibrationValue]
	if !stored { // as in most sessions
		return nil
	}
	var f factors
	_ = json.Unmarshal(raw, &f)
	return f
}

// raised returns f with the factors of others that are higher, and their limits. It is f
// itself if there are no others.
func (f factors) raised(others factors) factors {
	if len(others) == 0 {
		return f
	}
	out := maps.Clone(f)
	if out == nil {
		out = factors{}
	}
	for _, model := range slices.Sorted(maps.Keys(others)) {
		c, known := out[model]
		if !known && len(out) == maxCalibrated {
			continue
		}
		c.Factor = max(c.Factor, others[model].Factor)
		if limit := others[model].Limit; limit > 0 {
			c.Limit = limit
		}
		out[model] = c
	}
	return out
}
