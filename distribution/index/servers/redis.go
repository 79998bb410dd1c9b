package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/distribution/index/redis"
	"github.com/qtype-dev/qtype/distribution/redisclient"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/store"
	"github.com/qtype-dev/qtype/spec"
)

// redisTimeout bounds one command if the arguments set no other limit.
const redisTimeout = 60 * time.Second

// newRedis opens a full-text index by its endpoint, a vector index by its arguments.
func newRedis(_ context.Context, r store.Request) (index.Index, error) {
	c := redis.Config{Dimensions: r.Dimensions}
	var common *spec.RedisDocumentArguments
	var key, address, suffix string
	switch a := r.Arguments.(type) {
	case *spec.RedisDocumentArguments:
		common, key, address, suffix = a, "endpoint", r.Entity.(*spec.DocumentIndex).Endpoint, "/document"
	case *spec.RedisArguments:
		common, key, address, suffix = &a.RedisDocumentArguments, "args: redis_url", a.RedisURL, "/vector"
		c.Vectors = redisVectors(a)
	}
	c.Name = r.NameOr(common.IndexName)
	c.KeyPrefix = cmp.Or(common.Prefix, c.Name+suffix) + common.KeySeparator
	var err error
	c.Connection, err = redisServer(r, key, address, common.ConnectionArguments)
	if err != nil {
		return nil, err
	}
	x, err := redis.New(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return x, nil
}

// redisVectors returns the settings of a new field of vectors.
func redisVectors(a *spec.RedisArguments) redis.Vectors {
	v := redis.Vectors{Algorithm: strings.ToUpper(a.Algorithm), Metric: strings.ToUpper(a.DistanceMetric)}
	for _, setting := range []struct {
		name  string
		value int
	}{{"M", a.M}, {"EF_CONSTRUCTION", a.EFConstruction}, {"EF_RUNTIME", a.EFRuntime}} {
		if setting.value > 0 {
			v.Settings = append(v.Settings, setting.name, strconv.Itoa(setting.value))
		}
	}
	return v
}

// redisServer returns how the server is reached. key is what the document calls the
// address.
func redisServer(r store.Request, key, address string, a spec.ConnectionArguments) (redisclient.Config, error) {
	u, err := spec.ParseRedisAddress(address)
	if err != nil {
		return redisclient.Config{}, fmt.Errorf("%s %w", key, err)
	}
	if err := r.Policy.Service(u.Host); err != nil {
		return redisclient.Config{}, err
	}
	if r.Credential.Kind == "basic" {
		u.User = url.UserPassword(r.Credential.User, r.Credential.Key)
	}
	c := redisclient.Config{Address: u, SkipVerify: !a.VerifyCerts, Timeout: cmp.Or(time.Duration(a.Timeout*float64(time.Second)), redisTimeout)}
	if a.MaxRetries != nil {
		c.MaxRetries = cmp.Or(*a.MaxRetries, -1)
	}
	switch {
	case a.CACerts == "":
		return c, nil
	case u.Scheme != "rediss":
		return c, errors.New("args: ca_certs has no effect without TLS: use a URL with rediss://")
	}
	c.RootCAs, err = certificates(a.CACerts)
	return c, err
}
