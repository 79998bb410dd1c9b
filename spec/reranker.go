package spec

import (
	"fmt"
	"net/url"
	"slices"
	"sync"
)

// RankMethod declares one way to sort search results: a row of the table that the
// validator, the editor, the manual and the runtime read. What sorts the results is the
// row of the same name in internal/rerank.
type RankMethod struct {
	Implementation
	Auths      []string    // types of auth that it accepts; empty for none
	KeyEnv     []string    // environment variables of the key, the preferred one first
	BaseURL    string      // address of the service; empty for none
	NeedsQuery QueryPolicy // whether the step has a question
	Model      string      // the key of the model that it calls, empty for none
	NeedsModel bool        // the key of the model is required
	Lists      int         // the minimum number of lists
}

// QueryPolicy is whether a RankMethod reads a question.
type QueryPolicy int

// The query policies.
const (
	QueryRequired  QueryPolicy = iota // it compares the results with the question
	QueryForbidden                    // it does not read a question
	QueryWithModel                    // it reads one if the step has a model
)

// RankMethods lists the methods in the order in which messages and editors propose them.
// The caller must not change the list.
func RankMethods() []RankMethod { return rankMethods() }

var rankMethods = sync.OnceValue(rankMethodRows)

// LookupRankMethod finds a method by its name or by one of its aliases.
func LookupRankMethod(name string) (RankMethod, bool) {
	return findRow(RankMethods(), func(m RankMethod) bool { return m.IsNamed(name) })
}

// Selection returns the method with its arguments.
func (s *Reranker) Selection() Selection {
	made, row := selection("method", "method", s.Method, RankMethods(), func(m RankMethod) Implementation { return m.Implementation })
	made.Auths = append([]string{}, row.Auths...)
	made.Mappings = []Argument{{Key: "args", Given: s.Args, Into: newArguments(row.Args)}}
	return made
}

// CohereArgs are the arguments of the method cohere.
type CohereArgs struct {
	// ModelID is the model of the service.
	ModelID string `yaml:"model_id" default:"rerank-v3.5"`
	// BaseURL is the address before /v2/rerank: Cohere's, or that of any compatible server.
	BaseURL string `yaml:"base_url" default:"https://api.cohere.com"`
	// MaxTokensPerDoc is how many tokens of a text the model reads; without it the service decides.
	MaxTokensPerDoc int `yaml:"max_tokens_per_doc"`
	// BatchSize is the maximum number of texts of one request.
	BatchSize int `yaml:"batch_size" default:"1000"`
}

// CheckArguments reports values that are out of range.
func (a *CohereArgs) CheckArguments() []*ArgumentError {
	return slices.Concat(atLeast("max_tokens_per_doc", a.MaxTokensPerDoc, 0), atLeast("batch_size", a.BatchSize, 1), webAddress("base_url", a.BaseURL))
}

// JinaArgs are the arguments of the method jina.
type JinaArgs struct {
	// ModelID is the model of the service.
	ModelID string `yaml:"model_id" default:"jina-reranker-v2-base-multilingual"`
	// BaseURL is the address before /v1/rerank: Jina's, or that of any compatible server, such as vLLM.
	BaseURL string `yaml:"base_url" default:"https://api.jina.ai"`
	// BatchSize is the maximum number of texts of one request.
	BatchSize int `yaml:"batch_size" default:"1000"`
}

// CheckArguments reports values that are out of range.
func (a *JinaArgs) CheckArguments() []*ArgumentError {
	return slices.Concat(atLeast("batch_size", a.BatchSize, 1), webAddress("base_url", a.BaseURL))
}

// TEIArgs are the arguments of the method tei.
type TEIArgs struct {
	// BaseURL is the address before /rerank.
	BaseURL string `yaml:"base_url" default:"http://127.0.0.1:8080"`
	// BatchSize is the maximum number of texts of one request, that of the server.
	BatchSize int `yaml:"batch_size" default:"32"`
	// Truncate cuts texts that are too long for the model; otherwise they are an error.
	Truncate bool `yaml:"truncate" default:"true"`
}

// CheckArguments reports values that are out of range.
func (a *TEIArgs) CheckArguments() []*ArgumentError {
	return slices.Concat(atLeast("batch_size", a.BatchSize, 1), webAddress("base_url", a.BaseURL))
}

// BedrockArgs are the arguments of the method bedrock.
type BedrockArgs struct {
	// ModelID is the id or the ARN of the model, such as cohere.rerank-v3-5:0.
	ModelID string `yaml:"model_id" jsonschema:"required"`
}

// JudgeArgs are the arguments of the method model.
type JudgeArgs struct {
	// BatchSize is how many texts the model scores in one call.
	BatchSize int `yaml:"batch_size" default:"10"`
	// MaxCharacters is how many characters of a text the model reads.
	MaxCharacters int `yaml:"max_characters" default:"2000"`
	// Instructions describe to the model what is relevant, in addition to the question.
	Instructions string `yaml:"instructions"`
}

// CheckArguments reports values that are out of range.
func (a *JudgeArgs) CheckArguments() []*ArgumentError {
	return slices.Concat(atLeast("batch_size", a.BatchSize, 1), atLeast("max_characters", a.MaxCharacters, 1))
}

// ResultsPerCall returns how many results a chat model scores in one call; 0 if no chat model scores them.
func (s *Reranker) ResultsPerCall() int {
	row, known := LookupRankMethod(s.Method)
	if !known {
		return 0
	}
	judge, ok := newArguments(row.Args).(*JudgeArgs)
	if !ok || len(DecodeArguments(s.Args, judge)) > 0 {
		return 0
	}
	return judge.BatchSize
}

// FusionArgs are the arguments of the method rrf.
type FusionArgs struct {
	// K reduces the lead of the first places: the score of a result is the sum of 1/(k + place) over the lists.
	K int `yaml:"k" default:"60"`
	// Weights are the weights of the lists in the order of the inputs; without them all lists weigh the same.
	Weights []float64 `yaml:"weights"`
}

// CheckArguments reports values that are out of range.
func (a *FusionArgs) CheckArguments() []*ArgumentError {
	problems := atLeast("k", a.K, 1)
	for _, w := range a.Weights {
		if w < 0 {
			return append(problems, &ArgumentError{Key: "weights", Message: "expected numbers of at least 0"})
		}
	}
	return problems
}

// DiversityArgs are the arguments of the method mmr.
type DiversityArgs struct {
	// Lambda is the weight of the relevance, between 0 and 1: with 1 results may repeat each other, with 0 they only have to be different.
	Lambda float64 `yaml:"lambda" default:"0.5"`
}

// CheckArguments reports values that are out of range.
func (a *DiversityArgs) CheckArguments() []*ArgumentError {
	if a.Lambda >= 0 && a.Lambda <= 1 {
		return nil
	}
	return []*ArgumentError{{Key: "lambda", Message: "expected a number between 0 and 1"}}
}

// atLeast reports a number that is less than low.
func atLeast(key string, n, low int) []*ArgumentError {
	if n >= low {
		return nil
	}
	return []*ArgumentError{{Key: key, Message: fmt.Sprintf("expected a whole number of at least %d", low)}}
}

// webAddress reports a text that is not the address of a web server.
func webAddress(key, text string) []*ArgumentError {
	u, err := url.Parse(text)
	if err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") {
		return nil
	}
	return []*ArgumentError{{Key: key, Message: "expected an http or https address"}}
}

// rankMethodRows is the table.
func rankMethodRows() []RankMethod {
	keys := []string{"api_key", "bearer_token"}
	return []RankMethod{
		{
			Implementation: Implementation{Name: "cohere", Doc: "Cohere's rerank API, and servers with its protocol",
				Aliases: []string{"llama_index.postprocessor.cohere_rerank.CohereRerank"}, Args: func() any { return new(CohereArgs) }},
			Auths: keys, KeyEnv: []string{"COHERE_API_KEY", "CO_API_KEY"}, BaseURL: "https://api.cohere.com", Lists: 1,
		},
		{
			Implementation: Implementation{Name: "jina", Doc: "Jina's rerank API, and servers with its protocol: vLLM, llama.cpp, Infinity",
				Aliases: []string{"llama_index.postprocessor.jinaai_rerank.JinaRerank"}, Args: func() any { return new(JinaArgs) }},
			Auths: keys, KeyEnv: []string{"JINA_API_KEY"}, BaseURL: "https://api.jina.ai", Lists: 1,
		},
		{
			Implementation: Implementation{Name: "tei", Doc: "Hugging Face's Text Embeddings Inference with a reranking model",
				Args: func() any { return new(TEIArgs) }},
			Auths: keys, Lists: 1,
		},
		{
			Implementation: Implementation{Name: "bedrock", Doc: "the rerank API of Amazon Bedrock",
				Aliases: []string{"llama_index.postprocessor.bedrock_rerank.BedrockRerank"}, Args: func() any { return new(BedrockArgs) }},
			Auths: []string{"aws"}, Lists: 1,
		},
		{
			Implementation: Implementation{Name: "model", Doc: "a chat model that scores each result",
				Aliases: []string{"llama_index.core.postprocessor.LLMRerank"}, Args: func() any { return new(JudgeArgs) }},
			Model: "model", NeedsModel: true, Lists: 1,
		},
		{
			Implementation: Implementation{Name: "rrf", Doc: "reciprocal rank fusion, which combines several lists by the places of the results",
				Args: func() any { return new(FusionArgs) }},
			NeedsQuery: QueryForbidden, Lists: 2,
		},
		{
			Implementation: Implementation{Name: "mmr", Doc: "maximal marginal relevance, which prefers results that differ from each other, by the vectors of the embedding_model or those of the results",
				Args: func() any { return new(DiversityArgs) }},
			NeedsQuery: QueryWithModel, Model: "embedding_model", Lists: 1,
		},
	}
}
