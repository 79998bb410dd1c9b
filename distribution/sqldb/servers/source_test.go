package servers_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/distribution/sqldb/servers"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
)

// selects is an application that runs a query.
const selects = `id: app
flows:
  - id: main
    variables:
      - {id: ids, type: 'list[int]'}
      - {id: "no", type: text}
      - {id: total, type: float}
      - {id: paid, type: boolean}
      - {id: placed, type: date}
      - {id: at, type: datetime}
      - {id: tags, type: 'list[text]'}
      - {id: id, type: int}
      - {id: raw, type: bytes}
    inputs: [ids]
    outputs: ["no", total, paid, placed, at, tags, id, raw]
    steps: [{type: SQLSource, id: ask, connection: %s, query: %s, inputs: [ids], outputs: ["no", total, paid, placed, at, tags, id, raw]}]
`

// Values of database servers are converted by a step like those of SQLite.
func TestSQLSource_Servers(t *testing.T) {
	const want = `["12.50",12.5,true,"2024-02-29","2024-02-29T12:30:00",["a","b"],%s,{"base64":"AP8="}]`
	server := mariadb.Get(t)
	for address, query := range map[string]string{
		postgres.Get(t).URL(): `SELECT 12.50::numeric AS no, 12.50::numeric AS total, true AS paid, DATE '2024-02-29' AS placed,
			TIMESTAMP '2024-02-29 12:30' AS at, ARRAY['a','b'] AS tags, i AS id, '\x00ff'::bytea AS raw FROM generate_series(1, 9) i WHERE i = ANY(:ids) ORDER BY i`,
		"mariadb://shop:" + servertest.Password + "@" + server.Address() + "/shop": `SELECT CAST(12.5 AS DECIMAL(5,2)) AS no, CAST(12.5 AS DECIMAL(5,2)) AS total, 1=1 AS paid,
			DATE '2024-02-29' AS placed, TIMESTAMP '2024-02-29 12:30:00' AS at, JSON_ARRAY('a','b') AS tags, seq AS id, x'00ff' AS raw FROM seq_1_to_9 WHERE JSON_CONTAINS(:ids, seq) ORDER BY seq`,
	} {
		name, _, _ := strings.Cut(address, ":")
		quoted := func(text string) string {
			b, err := json.Marshal(text) // also YAML
			testkit.Must(t, err)
			return string(b)
		}
		parts := runtime.CoreParts()
		parts.Databases = servers.Drivers()
		path := testkit.WriteFile(t, "app.qtype.yaml", fmt.Sprintf(selects, quoted(address), quoted(query)))
		app, err := qtype.Open(runtime.WithParts(t.Context(), parts), path, qtype.WithEphemeral())
		testkit.Must(t, err)
		rows := slices.Values([]runtime.Input{runtime.Row(map[string]any{"ids": []any{7, 8}})})
		var got []string
		for result, err := range app.Run(t.Context(), "main", rows) {
			testkit.Must(t, err)
			if result.Err != nil {
				t.Errorf("%s: %v", name, result.Err)
			}
			got = append(got, string(value.JSON(result.AppendOutputs(nil))))
		}
		if want := []string{fmt.Sprintf(want, "7"), fmt.Sprintf(want, "8")}; !slices.Equal(got, want) {
			t.Errorf("%s: got %q\nwant %q", name, got, want)
		}
		testkit.Must(t, app.Close(t.Context()))
	}
}
