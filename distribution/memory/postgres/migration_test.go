package postgres_test

import (
	"os"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// TestStore_Migration upgrades tables of the first version, and those that were
// created with the newest column.
func TestStore_Migration(t *testing.T) {
	first, err := os.ReadFile("testdata/format1.sql")
	testkit.Must(t, err)
	const column = `ALTER TABLE %ssessions ADD COLUMN change bigint NOT NULL DEFAULT 7; ALTER TABLE %ssessions ALTER COLUMN change DROP DEFAULT;`
	for name, statements := range map[string]string{"first version": string(first), "with the column change": string(first) + column} {
		t.Run(name, func(t *testing.T) {
			server := shared.Get(t)
			storetest.RunMigration(t, func(t *testing.T) string {
				address := newAddress(t, server)
				execSQL(t, address, statements)
				return address
			}, func(t *testing.T, newAddress string) store.Store { return open(t, newAddress) })
		})
	}
}
