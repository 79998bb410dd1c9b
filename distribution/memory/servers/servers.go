// Package servers opens the stores of memories on servers, PostgreSQL and Redis, which are no part of the core.
package servers

import (
	"github.com/qtype-dev/qtype/distribution/memory/postgres"
	"github.com/qtype-dev/qtype/distribution/memory/redis"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/memory/store"
)

// Openers returns the table of the stores of the core and of servers. The caller may change it.
func Openers() storeurl.Openers {
	all := storeurl.Core()
	all["postgres"], all["redis"] = openPostgres, openRedis
	return all
}

// Quiet stops drivers from logging to standard error, in the whole program.
func Quiet() { redis.Quiet() }

func openPostgres(address string, _ func(string)) (store.Store, error) {
	return storeurl.AsStore(postgres.Open(address))
}

func openRedis(address string, warn func(string)) (store.Store, error) {
	return storeurl.AsStore(redis.Open(address, redis.Warn(warn)))
}
