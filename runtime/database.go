package runtime

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/spec"
)

// databases has the connections of the application's SQLSource steps. The zero
// value is empty. It is safe for concurrent use.
type databases struct {
	mu   sync.Mutex
	open map[*spec.SQLSource]*sqldb.Source
}

// database returns the shared source of a step's rows. The source connects at first
// use.
func (a *App) database(s *spec.SQLSource) (*sqldb.Source, error) {
	a.databases.mu.Lock()
	defer a.databases.mu.Unlock()
	if made, ok := a.databases.open[s]; ok {
		return made, nil
	}
	address, err := a.secret(s.Connection)
	if err != nil {
		return nil, err
	}
	login, err := a.databaseLogin(s)
	if err != nil {
		return nil, err
	}
	made, err := sqldb.Open(a.background(), address, s.Query, login)
	if err != nil {
		return nil, err
	}
	if a.databases.open == nil {
		a.databases.open = map[*spec.SQLSource]*sqldb.Source{}
	}
	a.databases.open[s] = made
	return made, nil
}

// databaseLogin returns how a step's connections log in; nil without an auth.
func (a *App) databaseLogin(s *spec.SQLSource) (sqldb.Login, error) {
	switch auth := s.Auth.To.(type) {
	case spec.LoginAuth:
		user, secret := auth.Login()
		return func(context.Context, *sqlquery.URL) (string, string, error) {
			password, err := a.secret(secret) // again for each connection: it may have been rotated
			return user, password, err
		}, nil
	case *spec.AWSAuth:
		signer, err := awsauth.New(auth, awsauth.Options{Getenv: a.Getenv, Secret: a.secret, Policy: a.opts.Policy})
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, u *sqlquery.URL) (string, string, error) {
			token, err := signer.DatabaseToken(ctx, u.Host, cmp.Or(u.Port, u.Dialect.Port()), u.User, time.Now())
			return "", token, err
		}, nil
	}
	return nil, nil
}

// close closes all connections.
func (d *databases) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, s := range d.open {
		errs = append(errs, s.Close())
	}
	d.open = nil
	return errors.Join(errs...)
}
