package servers

import (
	"cmp"
	"context"
	"time"

	"github.com/qtype-dev/qtype/distribution/awssdk"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/sqlquery"
)

// loginOf returns how connections to a server log in, nil for the user of the URL: with tokens of the AWS identity, if there is one.
func loginOf(a sqldb.Access) (sqldb.Login, error) {
	if a.AWS == nil {
		return a.Login, nil
	}
	signer, err := awssdk.New(a.AWS, a.Env)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, u *sqlquery.URL) (string, string, error) {
		token, err := signer.DatabaseToken(ctx, u.Host, cmp.Or(u.Port, u.Dialect.Port()), u.User, time.Now())
		return "", token, err
	}, nil
}
