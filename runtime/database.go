package runtime

import (
	"context"
	"errors"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/spec"
)

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
	made, err := sqldb.Open(a.background(), address, s.Query, a.databaseAccess(s))
	if err != nil {
		return nil, err
	}
	if a.databases.open == nil {
		a.databases.open = map[*spec.SQLSource]*sqldb.Source{}
	}
	a.databases.open[s] = made
	return made, nil
}

// databaseAccess returns how a step's connections log in.
func (a *App) databaseAccess(s *spec.SQLSource) sqldb.Access {
	access := sqldb.Access{Env: awsauth.Options{Getenv: a.Getenv, Secret: a.secret, Policy: a.opts.Policy}, Supervisor: a.opts.Supervisor}
	if s.Auth.To != nil {
		access.Kind = spec.TypeName(s.Auth.To)
	}
	switch auth := s.Auth.To.(type) {
	case spec.LoginAuth:
		user, secret := auth.Login()
		access.Login = func(context.Context, *sqlquery.URL) (string, string, error) {
			password, err := a.secret(secret) // again for each connection: it may have been rotated
			return user, password, err
		}
	case *spec.AWSAuth:
		access.AWS = auth
	case *spec.VertexAuth:
		access.Google = auth
	case *spec.AzureAuth:
		access.Azure = auth
	}
	return access
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
