package source

import (
	"encoding/json"
	"errors"
)

func looksLikeLiteLLM(top map[string]json.RawMessage) bool { return false }

func readLiteLLM(top map[string]json.RawMessage) (Rows, error) { return Rows{}, errors.New("todo") }

func readModelsDev(top map[string]json.RawMessage) (Rows, error) { return Rows{}, errors.New("todo") }

// perMillion converts the price of a token. Fractions of a micro-dollar are rounding errors.
func perMillion(token float64) *float64 {
	rate := round(token * 1e6)
	return &rate
}
