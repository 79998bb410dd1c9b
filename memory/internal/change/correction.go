package change

import (
	"encoding/json"
	"maps"
	"slices"
)

const (
	calibrationValue = "calibration" // the value with the factors of a session, as JSON

	MaxFactor     = 4  // the highest factor: a wrong report must not empty the window
	maxCalibrated = 16 // models per session with a factor
	TemplateRoom  = 32 // tokens that the template of a chat adds to any request
)

// Correction is what the calls of a session have shown of one model.
type Correction struct {
	// Factor is the tokens of a request as the provider counts them, divided by the
	// estimate. It never decreases and is between 1 and MaxFactor; 0 if it is unknown.
	Factor float64 `json:"factor,omitempty"`
	// Limit is the context window that the provider reported when it rejected a request, 0 if unknown.
	Limit int `json:"limit,omitempty"`
}

// Factors holds corrections by the provider's name of the model.
type Factors map[string]Correction

// FactorsOf returns the factors of a session. A value that cannot be read is ignored:
// the next report replaces it.
func FactorsOf(values map[string][]byte) Factors {
	var f Factors
	_ = json.Unmarshal(values[calibrationValue], &f)
	return f
}

// Raised returns f with the factors of others that are higher, and their limits.
func (f Factors) Raised(others Factors) Factors {
	out := maps.Clone(f)
	if out == nil {
		out = Factors{}
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
