package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/qtype-dev/qtype/distribution/memory/postgres"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestQueriesUseIndexes checks the plans of the queries of every append and turn.
func TestQueriesUseIndexes(t *testing.T) {
	server := shared.Get(t)
	address := newAddress(t, server)
	s := open(t, address)
	defer func() { testkit.Must(t, s.Close()) }()
	for session := range 20 {
		c := store.Change{Next: 1, State: store.State{Last: 200}}
		for seq := int64(1); seq <= 200; seq++ {
			c.Entries = append(c.Entries, &store.Entry{Seq: seq, Message: chat.Message{ID: fmt.Sprint(seq), Role: chat.User}})
		}
		testkit.Must(t, s.Apply(t.Context(), store.Key{Memory: "m", Session: fmt.Sprint(session)}, c))
	}
	conn, err := pgx.Connect(t.Context(), server.URL())
	testkit.Must(t, err)
	defer func() { testkit.Must(t, conn.Close(t.Context())) }()
	// The plan after five uses of a prepared statement. Small tables would be scanned.
	_, err = conn.Exec(t.Context(), "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off")
	testkit.Must(t, err)
	for name, wanted := range map[string]string{
		"live by id": "(message_key = wanted.wanted))",
		"range":      "(seq >= $3) AND (seq <= $4))",
		"head":       "((memory_key = $1) AND (session_key = $2))",
		"sessions":   "((memory_key = $1) AND (SUBSTRING(session FROM 1 FOR 256) >= SUBSTRING($2 FROM 1 FOR 256)))",
		"page":       "(SUBSTRING(session FROM 1 FOR 256) >= SUBSTRING($2 FROM 1 FOR 256)) AND (SUBSTRING(session FROM 1 FOR 256) <= SUBSTRING($4 FROM 1 FOR 256)))",
	} {
		statement, args := s.Statement(name)
		_, err := conn.Exec(t.Context(), "DEALLOCATE ALL; PREPARE it AS "+statement)
		testkit.Must(t, err)
		rows, err := conn.Query(t.Context(), "EXPLAIN EXECUTE it ("+strings.TrimSuffix(strings.Repeat("NULL,", args), ",")+")", pgx.QueryExecModeSimpleProtocol)
		testkit.Must(t, err)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		testkit.Must(t, err)
		text := strings.Join(plan, "\n")
		if !strings.Contains(text, wanted) || strings.Contains(text, "Seq Scan") || strings.Contains(text, "Filter: (message_key") {
			t.Errorf("%s: inefficient plan:\n%s", name, text)
		}
	}
}

var _ store.Store = (*postgres.Store)(nil)
