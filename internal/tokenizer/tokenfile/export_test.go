package tokenfile

// ParseLimited returns the count of a tokenizer.json whose search in each text has another limit.
func ParseLimited(data []byte, limit func(size int) func() bool) (func(text string) int, error) {
	p, err := readPipeline(data)
	if err != nil {
		return nil, err
	}
	p.limit = limit
	return p.count, nil
}
