package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/redis"
	"github.com/qtype-dev/qtype/spec"
)

// redisTimeout bounds one command if the arguments set no other limit.
const redisTimeout = 60 * time.Second

// newRedis opens a full-text index by its endpoint, a vector index by its arguments.
func newRedis(_ context.Context, r request) (index.Index, error) {
	c := redis.Config{Dimensions: r.dimensions}
	var common *spec.RedisDocumentArguments
	var key, address, suffix string
	switch a := r.args.(type) {
	case *spec.RedisDocumentArguments:
		common, key, address, suffix = a, "endpoint", r.entity.(*spec.DocumentIndex).Endpoint, "/document"
	case *spec.RedisArguments:
		common, key, address, suffix = &a.RedisDocumentArguments, "args: redis_url", a.RedisURL, "/vector"
		c.Vectors = redisVectors(a)
	}
	c.Name = r.nameOr(common.IndexName)
	c.KeyPrefix = cmp.Or(common.Prefix, c.Name+suffix) + common.KeySeparator
	var err error
	c.Options, err = r.redisOptions(key, address, common.ConnectionArguments)
	if err != nil {
		return nil, err
	}
	return redis.New(c), nil
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

// redisOptions returns the settings of the connections. key is what the document calls the
// address.
func (r request) redisOptions(key, address string, a spec.ConnectionArguments) (*driver.Options, error) {
	u, err := spec.ParseRedisAddress(address)
	if err != nil {
		return nil, fmt.Errorf("%s %w", key, err)
	}
	if err := r.Policy.Service(u.Host); err != nil {
		return nil, err
	}
	o, err := driver.ParseURL(u.String())
	if err != nil {
		return nil, errors.New(key + ": " + strings.TrimPrefix(err.Error(), "redis: "))
	}
	if r.credential.kind == "basic" {
		o.Username, o.Password = r.credential.user, r.credential.key
	}
	// Answers are read in the form of the second version of the protocol, which all servers have.
	o.Protocol, o.ContextTimeoutEnabled, o.DisableIdentity, o.DialerRetries = 2, true, true, 1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ReadTimeout = cmp.Or(time.Duration(a.Timeout*float64(time.Second)), redisTimeout)
	o.WriteTimeout, o.PoolTimeout = o.ReadTimeout, o.ReadTimeout
	if a.MaxRetries != nil {
		o.MaxRetries = cmp.Or(*a.MaxRetries, -1) // 0 is the driver's default
	}
	return o, setRedisTLS(o, a)
}

// setRedisTLS sets how the certificate of the server is checked.
func setRedisTLS(o *driver.Options, a spec.ConnectionArguments) error {
	if o.TLSConfig == nil {
		if a.CACerts != "" {
			return errors.New("args: ca_certs has no effect without TLS: use a URL with rediss://")
		}
		return nil
	}
	o.TLSConfig.MinVersion = max(o.TLSConfig.MinVersion, tls.VersionTLS12)
	if !a.VerifyCerts {
		o.TLSConfig.InsecureSkipVerify = true
	}
	if a.CACerts == "" {
		return nil
	}
	roots, err := certificates(a.CACerts)
	o.TLSConfig.RootCAs = roots
	return err
}
