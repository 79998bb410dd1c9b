package servers_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/distribution/sqldb/servers"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec/value"
)

// everyType is a result with a column of each type.
func everyType() []byte {
	little := func(n uint64, size int) []byte { return binary.LittleEndian.AppendUint64(nil, n)[:size] }
	sized := func(b []byte) []byte { return append([]byte{byte(len(b))}, b...) }
	collation := []byte{9, 4, 0xd0, 0, 0x34}
	text := toUCS2("öl")
	clock := little(uint64(45_005_500_000)*10, 5) // 12:30:05.5
	day := little(738_944, 3)                     // 2024-02-29
	columns := []tdsColumn{
		{"i", []byte{0x26, 4}, sized(little(7, 4))},
		{"f", []byte{0x6d, 8}, sized(little(math.Float64bits(2.5), 8))},
		{"r", []byte{0x6d, 4}, sized(little(uint64(math.Float32bits(0.1)), 4))},
		{"d", []byte{0x6a, 17, 38, 2}, sized(append([]byte{1}, little(1_234_567_890_123_456_710, 8)...))},
		{"m", []byte{0x6e, 8}, sized(append(little(math.MaxUint32, 4), little(math.MaxUint32-12_344, 4)...))}, // -1.2345
		{"b", []byte{0x68, 1}, []byte{1, 1}},
		{"t", append([]byte{0xe7, 40, 0}, collation...), append([]byte{byte(len(text)), 0}, text...)},
		{"day", []byte{0x28}, sized(day)},
		{"tod", []byte{0x29, 7}, sized(clock)},
		{"at", []byte{0x2a, 7}, sized(append(clock[:5:5], day...))},
		{"zoned", []byte{0x2b, 7}, sized(append(append(clock[:5:5], day...), 120, 0))},
		{"raw", []byte{0xa5, 10, 0}, []byte{2, 0, 0, 0xff}},
		{"id", []byte{0x24, 16}, sized([]byte{0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff})},
	}
	nulls := make([][]byte, len(columns))
	for i, c := range columns {
		nulls[i] = []byte{0}
		if c.info[0] == 0xe7 || c.info[0] == 0xa5 {
			nulls[i] = []byte{0xff, 0xff}
		}
	}
	return tdsResult(columns, nulls)
}

func TestSQLServer(t *testing.T) {
	s := newTDS(t, "sesame/1", everyType())
	source := open(t, "mssql+pyodbc://ada:sesame%2F1@"+s.address+"/shop?driver=ODBC+Driver+18+for+SQL+Server&encrypt=no",
		"SELECT * FROM orders WHERE day = :day AND name = :name AND n > :n AND x > :x AND at < :at AND zoned < :zoned AND ok = :ok AND raw = :raw AND name <> :name AND gone = :gone AND js = :js")
	at := time.Date(2024, 2, 29, 12, 30, 5, 500_000_000, time.UTC)
	arguments := map[string]any{"day": value.Date{Year: 2024, Month: 2, Day: 29}, "name": "O'Hara", "n": int64(3), "x": 0.5,
		"at": value.DateTime{Time: at}, "zoned": value.DateTime{Time: at, Zoned: true}, "ok": true, "raw": []byte{0, 0xff}, "gone": nil, "js": []any{int64(1)}}
	var values []any
	for _, name := range source.Parameters() {
		values = append(values, arguments[name])
	}
	rows, err := queryRows(t, source, values...)
	testkit.Must(t, err)
	want := []string{
		`int64=7 float64=2.5 float64=0.1 value.Decimal=12345678901234567.10 value.Decimal=-1.2345 bool=true string="öl" value.Date="2024-02-29" string="12:30:05.5" ` +
			`value.DateTime="2024-02-29T12:30:05.5" value.DateTime="2024-02-29T12:30:05.5Z" []uint8={"base64":"AP8="} string="00112233-4455-6677-8899-AABBCCDDEEFF"`,
		strings.TrimSpace(strings.Repeat("<nil>=null ", 13)),
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Error(d)
	}
	parts := strings.Split(s.statements[0], " | ")
	wantParts := []string{
		"SELECT * FROM orders WHERE day = @p1 AND name = @p2 AND n > @p3 AND x > @p4 AND at < @p5 AND zoned < @p6 AND ok = @p7 AND raw = @p8 AND name <> @p2 AND gone = @p9 AND js = @p10",
		"@p1 date,@p2 nvarchar(6),@p3 bigint,@p4 float,@p5 datetime2(7),@p6 datetimeoffset(7),@p7 bit,@p8 varbinary(2),@p9 nvarchar(1),@p10 nvarchar(3)",
		"@p1=28:80460b", "@p2=O'Hara", "@p3=26:0300000000000000", "@p4=6d:000000000000e03f",
		"@p5=2a:c04f5ec96880460b", "@p6=2b:c04f5ec96880460b0000", "@p7=68:01", "@p8=a5:00ff", "@p9=null", "@p10=[1]",
	}
	if d := cmp.Diff(wantParts, parts); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"ada sesame/1 shop"}, s.logins); d != "" {
		t.Error(d)
	}
}

func TestSQLServer_Errors(t *testing.T) {
	s := newTDS(t, "sesame", append(tdsError(207, "Invalid column name 'x'."), tdsDone(2)...))
	address := "mssql://ada:sesame@" + s.address + "/shop?encrypt=no"
	_, err := queryRows(t, open(t, address, "SELECT x FROM t"))
	if err == nil || !strings.HasSuffix(err.Error(), "/shop: Invalid column name 'x'.") {
		t.Errorf("got %v", err)
	}
	wrong := strings.Replace(address, "sesame", "swordfish", 1)
	if _, err := queryRows(t, open(t, wrong, "SELECT 1 AS x")); err == nil || !strings.Contains(err.Error(), "Login failed for user 'ada'.") || strings.Contains(err.Error(), "swordfish") {
		t.Errorf("got %v", err)
	}
	secure := strings.Replace(address, "?encrypt=no", "", 1) // this server cannot encrypt
	if _, err := queryRows(t, open(t, secure, "SELECT 1 AS x")); err == nil || !strings.Contains(err.Error(), "encryption") {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{"INSERT INTO t VALUES (1)", "WITH x AS (SELECT 1 AS n) DELETE FROM t", "SELECT 1 AS x INTO copy"} {
		if _, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), address, text, sqldb.Access{}); err == nil || !strings.Contains(err.Error(), "a query of SQL Server ") {
			t.Errorf("%s: got %v", text, err)
		}
	}
	if _, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), address, "SELECT 1", sqldb.Access{Kind: "aws"}); err == nil || err.Error() != "the auth of SQL Server must be of type basic, bearer_token, azure" {
		t.Errorf("got %v", err)
	}
}
