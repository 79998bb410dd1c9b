package rerank

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

var errNoRanking = errors.New("the answer is not that of a reranker; check base_url")

// Options are what rankers need of the application.
type Options struct {
	Getenv   func(name string) string                           // the environment of the user; nil means os.Getenv
	Key      func(name string) string                           // the environment for keys, which may be one of the document; nil means Getenv
	HTTP     *http.Client                                       // carries the calls; nil means NewClient
	Secret   func(spec.Secret) (string, error)                  // resolves references to a secret manager; nil where there is none
	AWS      awsauth.Builder                                    // signs with AWS identities; nil in a program without this part
	Policy   *trust.Policy                                      // what the document may reach; nil allows everything
	Model    func(*spec.Model) (model.Chat, error)              // returns a chat model; nil where there are none
	Embedder func(*spec.EmbeddingModel) (model.Embedder, error) // returns an embedding model; nil where there are none
}

// withDefaults returns o with defaults for the fields that are not set.
func (o Options) withDefaults() Options {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Key == nil {
		o.Key = o.Getenv
	}
	if o.HTTP == nil {
		o.HTTP = NewClient()
	}
	return o
}

// builder makes the Ranker of one method. args is the struct of its row.
type builder func(s *spec.Reranker, row spec.RankMethod, args any, opts Options) (Ranker, error)

// builders is the one table of the methods that can run.
var builders = sync.OnceValue(func() map[string]builder {
	return map[string]builder{
		"cohere":  buildCohere,
		"jina":    buildJina,
		"tei":     buildTEI,
		"bedrock": buildBedrock,
		"model":   buildJudge,
		"rrf":     buildFusion,
		"mmr":     buildDiversity,
	}
})

// New makes the Ranker of a step. It calls nothing; an error means that the document or the
// environment lacks something.
func New(s *spec.Reranker, opts Options) (Ranker, error) {
	row, known := spec.LookupRankMethod(s.Method)
	build, available := builders()[row.Name]
	if !known || !available {
		return nil, &spec.NotAvailableError{What: "method " + s.Method, Key: "method"}
	}
	args := row.Args()
	if problems := spec.DecodeArguments(s.Args, args); len(problems) > 0 {
		return nil, fmt.Errorf("args: %w", problems[0])
	}
	made, err := build(s, row, args, opts.withDefaults())
	return withPrices(made, s), err
}

// NewBedrock makes the Ranker of a BedrockReranker. It calls no server.
func NewBedrock(s *spec.BedrockReranker, opts Options) (Ranker, error) {
	made, err := bedrockOf(s.Auth.To, s.ModelID, opts.withDefaults())
	return withPrices(made, s), err
}

// bedrockOf makes a Ranker of Bedrock.
func bedrockOf(auth *spec.AWSAuth, modelID string, opts Options) (Ranker, error) {
	identity := awsauth.Options{Getenv: opts.Getenv, Secret: opts.Secret}
	if auth != nil { // otherwise the user's own credentials go to their own service
		identity.Getenv, identity.Policy = opts.Policy.Getenv(opts.Getenv), opts.Policy
	}
	signer, err := opts.AWS.Signer(auth, identity)
	if err != nil {
		return nil, err
	}
	return newBedrock(modelID, signer, opts)
}

func buildCohere(s *spec.Reranker, row spec.RankMethod, args any, opts Options) (Ranker, error) {
	a := args.(*spec.CohereArgs)
	return newService(s, row, opts, service{protocol: cohere(), batchSize: a.BatchSize, server: server{url: a.BaseURL}, settings: settings{model: a.ModelID, maxTokens: a.MaxTokensPerDoc}})
}

func buildJina(s *spec.Reranker, row spec.RankMethod, args any, opts Options) (Ranker, error) {
	a := args.(*spec.JinaArgs)
	return newService(s, row, opts, service{protocol: jina(), batchSize: a.BatchSize, server: server{url: a.BaseURL}, settings: settings{model: a.ModelID}})
}

func buildTEI(s *spec.Reranker, row spec.RankMethod, args any, opts Options) (Ranker, error) {
	a := args.(*spec.TEIArgs)
	return newService(s, row, opts, service{protocol: tei(), batchSize: a.BatchSize, server: server{url: a.BaseURL}, settings: settings{truncate: a.Truncate}})
}

func buildBedrock(s *spec.Reranker, _ spec.RankMethod, args any, opts Options) (Ranker, error) {
	auth, ok := s.Auth.To.(*spec.AWSAuth)
	if !ok && s.Auth.To != nil {
		return nil, fmt.Errorf("the method bedrock takes an auth of type aws; %s is %s", s.Auth.To.EntityID(), spec.TypeName(s.Auth.To))
	}
	return bedrockOf(auth, args.(*spec.BedrockArgs).ModelID, opts)
}

func buildJudge(s *spec.Reranker, _ spec.RankMethod, args any, opts Options) (Ranker, error) {
	if s.Model.To == nil || opts.Model == nil {
		return nil, errors.New("the model is not linked")
	}
	m, err := opts.Model(s.Model.To.Base())
	a := args.(*spec.JudgeArgs)
	return Judge{Model: m, BatchSize: a.BatchSize, MaxLength: a.MaxCharacters, Instructions: a.Instructions}, err
}

func buildFusion(_ *spec.Reranker, _ spec.RankMethod, args any, _ Options) (Ranker, error) {
	a := args.(*spec.FusionArgs)
	return Fusion{K: a.K, Weights: a.Weights}, nil
}

func buildDiversity(s *spec.Reranker, _ spec.RankMethod, args any, opts Options) (Ranker, error) {
	d := Diversity{Lambda: args.(*spec.DiversityArgs).Lambda}
	if s.EmbeddingModel.To == nil {
		return d, nil
	}
	if opts.Embedder == nil {
		return nil, errors.New("the embedding model is not linked")
	}
	var err error
	d.Model, err = opts.Embedder(s.EmbeddingModel.To)
	return d, err
}

// newService completes a service whose url is the base URL: with its credentials.
func newService(s *spec.Reranker, row spec.RankMethod, opts Options, made service) (Ranker, error) {
	key, host, err := findKey(s, row, opts)
	if err != nil {
		return nil, err
	}
	base := made.url
	if host != "" {
		if _, given := s.Args["base_url"]; !given {
			base = host
		} else if strings.TrimRight(host, "/") != strings.TrimRight(base, "/") {
			return nil, fmt.Errorf("auth %s belongs to %s, but base_url is %s", s.Auth.To.EntityID(), host, base)
		}
	}
	if key == "" && base == row.BaseURL {
		return nil, fmt.Errorf("no key for %s: set %s, or add an auth", base, strings.Join(row.KeyEnv, " or "))
	}
	made.url, made.http, made.secret, made.sign, made.policy = join(base, made.protocol.path), opts.HTTP, key, bearer(key), retries
	return &made, nil
}

// findKey returns the key of a service: the key of the step's auth, else the key of the
// environment, which only the service itself gets.
func findKey(s *spec.Reranker, row spec.RankMethod, opts Options) (key, host string, err error) {
	if s.Auth.To == nil {
		args, ok := s.Args["base_url"].(string)
		if ok && args != row.BaseURL {
			return "", "", nil
		}
		for _, name := range row.KeyEnv {
			key = cmp.Or(key, strings.TrimSpace(opts.Key(name)))
		}
		return key, "", nil
	}
	auth, ok := s.Auth.To.(spec.KeyAuth)
	if !ok {
		return "", "", fmt.Errorf("the method %s takes an auth of type %s; %s is %s", row.Name, strings.Join(row.Auths, " or "), s.Auth.To.EntityID(), spec.TypeName(s.Auth.To))
	}
	secret, host := auth.ModelKey()
	if key, err = secret.Resolve(opts.Secret); err != nil {
		return "", "", fmt.Errorf("auth %s: %w", s.Auth.To.EntityID(), err)
	}
	key = strings.TrimSpace(key)
	if strings.ContainsFunc(key, unicode.IsControl) {
		return "", "", fmt.Errorf("auth %s contains a character that is not allowed in a header", s.Auth.To.EntityID())
	}
	return key, host, nil
}

// withPrices adds the cost of calls to their usage, if the prices of the model are known.
func withPrices(r Ranker, s spec.ChargedRanker) Ranker {
	if m, charged := s.RankModel(); r != nil && charged && m.Prices != nil {
		return &priced{r, m.Prices}
	}
	return r
}

type priced struct {
	Ranker
	prices *catalogue.Prices
}

// Rank sorts the results.
func (p *priced) Rank(ctx context.Context, req Request) ([]Choice, Usage, error) {
	choices, usage, err := p.Ranker.Rank(ctx, req)
	if err == nil && usage.Queries == 0 && p.prices.Queries != nil { // Bedrock does not report them
		usage.Queries = (len(req.Items) + spec.RankQueryTexts - 1) / spec.RankQueryTexts
	}
	usage.Cost += model.Usage{Input: usage.Input, Queries: usage.Queries}.Charge(p.prices, time.Now())
	return choices, usage, err
}
