package opensearch

// Vectors is how a server stores and compares vectors.
type Vectors interface {
	// Mapping returns the settings of an index and the fields of a vector; the field with
	// the empty name is the one that the arguments of the index name.
	Mapping(dimensions int) (settings, fields map[string]any)
	// Bytes reports whether documents have the field of the vector as bytes.
	Bytes() bool
	// Query returns the part of a search for the nearest vectors. The condition may be nil.
	Query(field string, vector []float32, k int, condition any) map[string]any
}

// minNeighbors is the least number of neighbors that the k-NN plugin looks for.
const minNeighbors = 100

type object = map[string]any

// KNN compares vectors by the k-NN plugin of OpenSearch.
type KNN struct {
	Space  string // the distance
	Engine string // the library; empty for that of the server
}

// Mapping returns the field of the plugin.
func (v KNN) Mapping(dimensions int) (settings, fields map[string]any) {
	method := object{"name": "hnsw", "space_type": v.Space}
	if v.Engine != "" {
		method["engine"] = v.Engine
	}
	return object{"index": object{"knn": true, "knn.algo_param.ef_search": 100}},
		object{"": object{"type": "knn_vector", "dimension": dimensions, "method": method}}
}

// Bytes is false.
func (KNN) Bytes() bool { return false }

// Query returns a query of the plugin. The engine lucene finds as many candidates as k, and
// with few of them misses some of the nearest.
func (KNN) Query(field string, vector []float32, k int, condition any) map[string]any {
	knn := object{"vector": vector, "k": max(k, minNeighbors)}
	if condition != nil {
		knn["filter"] = condition
	}
	return object{"query": object{"knn": object{field: knn}}}
}

// Exact compares all vectors by a script, which needs no plugin.
type Exact struct{}

// Mapping returns a field that is only stored, and one with the vector as bytes, which
// scripts can read.
func (Exact) Mapping(int) (settings, fields map[string]any) {
	return nil, object{"": object{"type": "float", "index": false, "doc_values": false}, bytesField: object{"type": "binary", "doc_values": true}}
}

// Bytes is true.
func (Exact) Bytes() bool { return true }

// dotProduct is the script: the product of two vectors of length 1, plus 1, because
// scores must not be negative.
const dotProduct = `
	if (doc['_qtype_vector'].size() == 0) { return 0; }
	def v = doc['_qtype_vector'].value;
	byte[] b = v.bytes;
	def sum = 1.0;
	for (int i = 0; i < params.q.length; i++) {
		int p = v.offset + 4 * i;
		int bits = ((b[p] & 255) << 24) | ((b[p + 1] & 255) << 16) | ((b[p + 2] & 255) << 8) | (b[p + 3] & 255);
		sum += params.q[i] * Float.intBitsToFloat(bits);
	}
	return Math.max(0, sum);`

// Query returns a query that computes the score of each entry.
func (Exact) Query(_ string, vector []float32, _ int, condition any) map[string]any {
	return scripted(dotProduct, normalized(vector), condition)
}

// scripted returns a query that computes the score of each entry that satisfies a
// condition.
func scripted(script string, vector []float32, condition any) map[string]any {
	if condition == nil {
		condition = object{"match_all": object{}}
	}
	return object{"query": object{"script_score": object{"query": object{"bool": object{"filter": []any{condition}}},
		"script": object{"source": script, "params": object{"q": vector}}}}}
}

// Dense compares vectors by the field dense_vector of Elasticsearch.
type Dense struct {
	Similarity string // cosine, dot_product or l2_norm
	Exact      bool   // compares all vectors
}

// Mapping returns the field.
func (v Dense) Mapping(dimensions int) (settings, fields map[string]any) {
	return nil, object{"": object{"type": "dense_vector", "dims": dimensions, "index": true, "similarity": v.Similarity}}
}

// Bytes is false.
func (Dense) Bytes() bool { return false }

// Query returns a search of Elasticsearch.
func (v Dense) Query(field string, vector []float32, k int, condition any) map[string]any {
	if v.Exact {
		script := map[string]string{
			"cosine":      "cosineSimilarity(params.q, '" + field + "') + 1.0",
			"dot_product": "def d = dotProduct(params.q, '" + field + "'); return Math.max(0, d + 1.0)",
			"l2_norm":     "1 / (1 + l2norm(params.q, '" + field + "'))",
		}[v.Similarity]
		return scripted(script, vector, condition)
	}
	const maxCandidates = 10_000 // of the server
	knn := object{"field": field, "query_vector": vector, "k": k, "num_candidates": min(max(5*k, 50), maxCandidates)}
	if condition != nil {
		knn["filter"] = condition
	}
	return object{"knn": knn}
}
