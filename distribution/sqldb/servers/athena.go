package servers

import (
	"cmp"
	"database/sql"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/distribution/awssdk"
	"github.com/qtype-dev/qtype/distribution/sqldb/athena"
	"github.com/qtype-dev/qtype/distribution/sqldb/remote"
	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// openAthena returns the pool for queries of Athena. The identity is that of the document, else
// the keys of the URL, else that of the environment.
func openAthena(u *sqlquery.URL, a sqldb.Access) (*sql.DB, error) {
	identity := a.AWS
	if identity == nil && u.User != "" {
		identity = &spec.AWSAuth{AccessKeyID: spec.NewSecret(u.User), SecretAccessKey: spec.NewSecret(u.Password)}
	}
	signer, err := awssdk.New(identity, a.Env)
	if err != nil {
		return nil, err
	}
	signer = signer.In(u.Region())
	region, err := signer.Region()
	if err != nil {
		return nil, errors.New("no AWS region: write awsathena+rest://@athena.REGION.amazonaws.com/database")
	}
	config := athena.Config{
		Endpoint: athenaEndpoint(u, region, a.Env.Getenv), Database: u.Database, Catalog: u.Options["catalog_name"],
		Output: u.Options["s3_staging_dir"], WorkGroup: u.Options["work_group"],
		Sign: func(req *http.Request, body []byte) error { return signer.Sign(req, body, "athena") },
	}
	return remote.Open(athena.New(config)), nil
}

func athenaHost(u *sqlquery.URL) string { return cmp.Or(u.Host, awsauth.Host("athena", u.Region())) }

// athenaEndpoint returns the address of the service: that of the environment, else the host of
// the URL, else that of the region.
func athenaEndpoint(u *sqlquery.URL, region string, getenv func(string) string) string {
	if address := awsauth.Endpoint("ATHENA", getenv); address != "" {
		return strings.TrimRight(address, "/") + "/"
	}
	return "https://" + sqldb.HostPort(cmp.Or(u.Host, awsauth.Host("athena", region)), u.Port) + "/"
}

// literal returns a run-time value as a literal of Athena's SQL: it compares values of the same
// type only.
func literal(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case bool, int64, value.Decimal:
		return value.Text(v)
	case float64:
		return strconv.FormatFloat(v, 'E', -1, 64) // a number with a point and no exponent is a decimal
	case []byte:
		return "X'" + strings.ToUpper(hex.EncodeToString(v)) + "'"
	case value.Date:
		return "DATE '" + v.String() + "'"
	case value.Time:
		return "TIME '" + value.Text(v) + "'"
	case value.DateTime:
		text := v.Time.Format("2006-01-02 15:04:05.999999")
		if v.Zoned {
			text = v.Time.UTC().Format("2006-01-02 15:04:05.999999") + " UTC"
		}
		return "TIMESTAMP '" + text + "'"
	case []any, *value.Record:
		return quoted(string(value.JSON(v)))
	}
	return quoted(value.Text(v))
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// athenaValue converts values of a column of Athena, which are texts. A text that is not of
// the type remains a text.
func athenaValue(typ string) func(any) any {
	parse := athenaParser(typ)
	return func(v any) any {
		text, ok := v.(string)
		if !ok {
			return v
		}
		if parsed, ok := parse(text); ok {
			return parsed
		}
		return text
	}
}

// athenaParser returns the parser of a column type.
func athenaParser(typ string) func(text string) (any, bool) {
	switch typ {
	case "BOOLEAN":
		return func(text string) (any, bool) { return text == "true", text == "true" || text == "false" }
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT":
		return func(text string) (any, bool) {
			n, err := strconv.ParseInt(text, 10, 64)
			return n, err == nil
		}
	case "FLOAT", "REAL", "DOUBLE":
		return func(text string) (any, bool) {
			n, err := strconv.ParseFloat(text, 64)
			return n, err == nil
		}
	case "DECIMAL":
		return func(text string) (any, bool) { return value.Decimal(text), true }
	case "DATE":
		return func(text string) (any, bool) {
			t, err := time.Parse(time.DateOnly, text)
			return sqldb.TimeValue(t, true, false), err == nil
		}
	case "TIMESTAMP", "TIMESTAMP WITH TIME ZONE":
		return athenaTime
	case "VARBINARY":
		return func(text string) (any, bool) {
			data, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
			return data, err == nil
		}
	}
	return func(text string) (any, bool) { return text, true }
}

// athenaTime parses a date and time, which may have the name of a zone.
func athenaTime(text string) (any, bool) {
	const layout = "2006-01-02 15:04:05.999999999"
	if t, err := time.Parse(layout, text); err == nil {
		return sqldb.TimeValue(t, false, false), true
	}
	i := strings.LastIndexByte(text, ' ')
	if i < 0 {
		return nil, false
	}
	if t, err := time.Parse(layout+" -07:00", text); err == nil {
		return sqldb.TimeValue(t, false, true), true
	}
	zone, err := time.LoadLocation(text[i+1:])
	if err != nil {
		return nil, false
	}
	t, err := time.ParseInLocation(layout, text[:i], zone)
	return sqldb.TimeValue(t, false, true), err == nil
}
