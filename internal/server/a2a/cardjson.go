package a2a

import (
	"encoding/json"
	"maps"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
)

// object is a JSON object.
type object = map[string]json.RawMessage

// cardJSON returns a card that clients of both versions of the protocol read: it has the
// members of both.
func cardJSON(card *sdk.AgentCard) ([]byte, error) {
	current, err := json.Marshal(card)
	if err != nil {
		return nil, err
	}
	former, err := json.Marshal(formerCard(card))
	if err != nil {
		return nil, err
	}
	return merge(former, current, "securitySchemes", "*")
}

// merge returns an object with the members of both; those of b win. The values at path,
// where * is each member, are merged too.
func merge(a, b json.RawMessage, path ...string) (json.RawMessage, error) {
	var first, second object
	if err := json.Unmarshal(a, &first); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &second); err != nil {
		return nil, err
	}
	out := object{}
	maps.Copy(out, first)
	for name, v := range second {
		if old, ok := first[name]; ok && len(path) > 0 && (path[0] == name || path[0] == "*") {
			var err error
			if v, err = merge(old, v, path[1:]...); err != nil {
				return nil, err
			}
		}
		out[name] = v
	}
	return json.Marshal(out)
}
