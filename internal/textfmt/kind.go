package textfmt

// Kind names the type of a value that was decoded from YAML or JSON, without the value, which may be secret.
func Kind(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case string:
		return "text"
	case bool:
		return "a boolean"
	case int, int64, float64:
		return "a number"
	case []any:
		if len(x) == 0 {
			return "an empty list"
		}
		return "a list"
	}
	return "a mapping"
}
