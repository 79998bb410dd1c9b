package spec

// RedisDocumentArguments are the `args` of a DocumentIndex in Redis.
type RedisDocumentArguments struct {
	// IndexName is the name of the index in the server; by default the name of the index.
	IndexName string `yaml:"index_name"`
	// Prefix is the beginning of the keys of entries; by default the name of the index and /vector, or /document in a DocumentIndex. The prefix of an index must not begin with that of another one.
	Prefix string `yaml:"prefix"`
	// KeySeparator is between the prefix and the id of an entry.
	KeySeparator string `yaml:"key_separator" default:"_"`
	ConnectionArguments
}

// RedisArguments are the `args` of a VectorIndex in Redis.
type RedisArguments struct {
	// RedisURL is the address of the server, such as redis://localhost:6379/0, or rediss:// for TLS.
	RedisURL string `yaml:"redis_url" default:"redis://localhost:6379"`
	// Algorithm is flat, which compares all vectors, or hnsw, which is approximate; of a new index.
	Algorithm string `yaml:"algorithm" default:"flat"`
	// DistanceMetric is the distance of a new index: cosine, l2 or ip.
	DistanceMetric string `yaml:"distance_metric" default:"cosine"`
	// M is the number of connections of each entry with hnsw; by default that of the server.
	M int `yaml:"m"`
	// EFConstruction is the number of candidates while an index with hnsw is built; by default that of the server.
	EFConstruction int `yaml:"ef_construction"`
	// EFRuntime is the number of candidates of a search with hnsw; by default that of the server.
	EFRuntime int `yaml:"ef_runtime"`
	RedisDocumentArguments
}

// CheckArguments reports an unusable address, unknown values and settings without effect.
func (a *RedisArguments) CheckArguments() []*ArgumentError {
	problems := checkValue(redisAddress("redis_url", a.RedisURL), "algorithm", a.Algorithm, "flat", "hnsw")
	problems = checkValue(problems, "distance_metric", a.DistanceMetric, "cosine", "l2", "ip")
	for _, setting := range []struct {
		key   string
		value int
	}{{"m", a.M}, {"ef_construction", a.EFConstruction}, {"ef_runtime", a.EFRuntime}} {
		switch {
		case setting.value < 0:
			problems = append(problems, &ArgumentError{Key: setting.key, Message: "expected 0, for the default of the server, or more"})
		case setting.value > 0 && a.Algorithm != "hnsw":
			problems = append(problems, &ArgumentError{Key: setting.key, Message: "has no effect without algorithm: hnsw"})
		}
	}
	return problems
}
