package postgres_test

import (
	"os"
	"testing"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// TestMigration: tables of the first version, and those that have had the newest
// column from the start, are brought up to date with all that they hold.
func TestMigration(t *testing.T) {
	first, err := os.ReadFile("testdata/format1.sql")
	must(t, err)
	const column = `ALTER TABLE %ssessions ADD COLUMN change bigint NOT NULL DEFAULT 7; ALTER TABLE %ssessions ALTER COLUMN change DROP DEFAULT;`
	for name, statements := range map[string]string{"first version": string(first), "with the number of changes": string(first) + column} {
		t.Run(name, func(t *testing.T) {
			server := shared.Get(t)
			storetest.RunMigration(t, func(t *testing.T) string {
				address := place(t, server)
				sql(t, address, statements)
				return address
			}, func(t *testing.T, place string) memory.Store { return open(t, place) })
		})
	}
}
