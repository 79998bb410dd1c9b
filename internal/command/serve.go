package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate"
)

// serveCommand is one call of qtype serve.
type serveCommand struct {
	*cli.Streams
	access    access.Config
	port      int
	insecure  bool
	reload    bool
	noUI      bool
	ephemeral bool
	place     appflags.Store
	grants    appflags.Access
	audit     appflags.Audit
	store     memory.Store // of all versions of the document with --ephemeral; otherwise nil
	hashKey   string
	drain     time.Duration
	engine    *cli.EnumFlag
	temporal  appflags.Temporal
	batches   string
	gather    time.Duration
	waves     *waves.Shared // nil without batches
	logFormat *cli.EnumFlag
	logLevel  *cli.EnumFlag
}

func newServe(s *cli.Streams) *cobra.Command {
	c := &serveCommand{Streams: s, logFormat: cli.NewEnumFlag("text", "json"), logLevel: cli.NewEnumFlag("info", "debug", "warn", "error"), engine: cli.NewEnumFlag(durable.Local, durable.Temporal)}
	cmd := &cobra.Command{
		Use:   "serve APP",
		Short: "Serve an application over HTTP",
		Long: `Serves the flows of an application over HTTP: REST with an OpenAPI description at
/openapi.json and a page at /docs, streams for chat clients, and runs that can be
followed, answered and cancelled. The server listens on this computer only, unless
callers authenticate: with the keys of --api-keys or QTYPE_API_KEYS
("name:key,name:key"), or with the tokens of --oidc-issuer.

A first SIGINT or SIGTERM stops accepting requests and waits until active runs have
ended, for --drain-timeout at most; a second one ends the process.`,
		Example: `  qtype serve app.qtype.yaml
  qtype serve app.qtype.yaml --port 9000 --reload
  (umask 077; qtype serve --hash-key ci >>keys.txt)
  qtype serve app.qtype.yaml --host 0.0.0.0 --api-keys keys.txt`,
		Args: c.arguments, ValidArgsFunction: cli.YAMLFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.hashKey != "" {
				return access.PrintHashKey(c.Out, c.Err, c.hashKey)
			}
			return c.run(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	cli.AddFlags(f, "Server", func() {
		f.StringVar(&c.access.Host, "host", "127.0.0.1", "`ADDRESS` to listen on")
		f.IntVarP(&c.port, "port", "p", 8000, "`PORT` to listen on; 0 for any free one")
		f.BoolVar(&c.reload, "reload", false, "serve the document again when its files change")
		f.BoolVar(&c.noUI, "no-ui", false, "no web interface")
		f.DurationVar(&c.drain, "drain-timeout", defaultDrain, "how long active runs may take after a signal, as a `DURATION`")
	})
	cli.AddFlags(f, "Where rows run", func() {
		c.engine.AddTo(cmd, "engine", "", "run the rows of requests in this process (local), or on workers (temporal; see qtype worker)")
		c.temporal.AddServeTo(f)
	})
	cli.AddFlags(f, "Batches of providers", func() {
		f.StringVar(&c.batches, "batches", "", "let asynchronous runs ask for batches, at half the price; `FILE` has their calls until they have ended")
		f.DurationVar(&c.gather, "batch-gather", defaultGather, "how long the calls of runs are gathered for a batch, as a `DURATION`")
	})
	cli.AddFlags(f, "Conversations", func() {
		f.BoolVar(&c.ephemeral, "ephemeral", false, "keep memories in RAM only")
		c.place.AddTo(f)
	})
	cli.AddFlags(f, "Access of the document", func() {
		c.grants.AddTo(f)
		c.audit.AddTo(f)
	})
	c.callerFlags(f)
	c.connectionFlags(f)
	cli.AddFlags(f, "Messages", func() {
		c.logFormat.AddTo(cmd, "log-format", "", "format of the log on standard error")
		c.logLevel.AddTo(cmd, "log-level", "", "least level of the log")
	})
	cli.GroupHelp(cmd)
	return cmd
}

// callerFlags adds the flags for who may call the server, and how much.
func (c *serveCommand) callerFlags(f *pflag.FlagSet) {
	a := &c.access
	cli.AddFlags(f, "Authentication of callers", func() {
		f.StringVar(&a.KeyFile, "api-keys", "", "`FILE` with the hash of an API key in each line")
		f.StringVar(&c.hashKey, "hash-key", "", "create an API key for `NAME`, print its line for --api-keys, and exit")
		f.BoolVar(&c.insecure, "insecure-no-auth", false, "listen on other addresses than loopback without authentication")
		f.StringVar(&a.OIDC.Issuer, "oidc-issuer", "", "`URL` of the OpenID provider whose tokens are accepted")
		f.StringVar(&a.OIDC.Audience, "oidc-audience", "", "`NAME` that tokens must be issued for")
		f.StringVar(&a.OIDC.NameClaim, "oidc-name-claim", "", "`CLAIM` with the name of the caller (default sub)")
		f.StringVar(&a.OIDC.RolesClaim, "oidc-roles-claim", "", "`CLAIM` with the roles of the caller (default roles)")
		f.StringSliceVar(&a.OIDC.Algorithms, "oidc-algorithm", nil, "accepted signature `ALGORITHM` (repeatable)")
		f.DurationVar(&a.OIDC.Skew, "oidc-clock-skew", 0, "difference of the clocks of provider and server, as a `DURATION` (default 1m)")
		f.BoolVar(&a.PublicAgentCard, "public-agent-card", false, "serve the A2A agent card without authentication")
	})
	cli.AddFlags(f, "Limits", func() {
		f.Int64Var(&a.Limits.BodyBytes, "max-body", 0, "largest body of a request in `BYTES` (default 32 MiB)")
		f.IntVar(&a.Limits.Rows, "max-rows", 0, "most `ROWS` of a request (default 10,000)")
		f.IntVar(&a.Limits.Requests, "max-requests", 0, "most concurrent `REQUESTS` of a caller (default 256)")
		f.IntVar(&a.Limits.Streams, "max-streams", 0, "most concurrent `STREAMS` of a caller (default 1,000)")
		f.IntVar(&a.Limits.Connections, "max-connections", 0, "most open `CONNECTIONS` (default 20,000)")
		f.Float64Var(&a.Limits.Rate, "rate", 0, "most `REQUESTS` of a caller in a second (default 50)")
		f.IntVar(&a.Limits.Burst, "burst", 0, "most `REQUESTS` of a caller at once above the rate (default 200)")
		f.DurationVar(&a.Limits.RequestTime, "request-timeout", 0, "longest `DURATION` of a request that is not a stream (default 15m)")
	})
}

// connectionFlags adds the flags for how clients reach the server.
func (c *serveCommand) connectionFlags(f *pflag.FlagSet) {
	a := &c.access
	cli.AddFlags(f, "Names, web pages and proxies", func() {
		f.StringSliceVar(&a.Hosts, "allowed-host", nil, "`NAME` under which clients reach the server (repeatable)")
		f.StringSliceVar(&a.Origins, "cors-origin", nil, "`ORIGIN` of web pages that may call the server (repeatable)")
		f.StringSliceVar(&a.Proxies, "trusted-proxy", nil, "`ADDRESS` of a reverse proxy (repeatable)")
		f.StringSliceVar(&a.AttachmentHosts, "attachment-host", nil, "`HOST` from which attachments may be fetched (repeatable)")
	})
	cli.AddFlags(f, "TLS", func() {
		f.StringVar(&a.TLS.CertFile, "tls-cert", "", "`FILE` with the certificate")
		f.StringVar(&a.TLS.KeyFile, "tls-key", "", "`FILE` with the key of the certificate")
		f.StringSliceVar(&a.TLS.Domains, "acme-domain", nil, "`NAME` for which a certificate is requested by ACME (repeatable)")
		f.StringVar(&a.TLS.Cache, "acme-cache", "", "`FOLDER` for certificates of ACME")
		f.StringVar(&a.TLS.Email, "acme-email", "", "`ADDRESS` of the contact for ACME")
		f.StringVar(&a.TLS.Directory, "acme-directory", "", "`URL` of the ACME server (default Let's Encrypt)")
	})
}

func (c *serveCommand) arguments(cmd *cobra.Command, args []string) error {
	if c.hashKey != "" && len(args) == 0 {
		return nil
	}
	return cli.Arguments("a document: qtype serve APP")(cmd, args)
}

// run serves a document until a signal.
func (c *serveCommand) run(ctx context.Context, path string) (err error) {
	if c.port < 0 || c.port > 65535 {
		return terminal.Usagef("--port cannot be %d: expected a number from 0 to 65535", c.port)
	}
	if r := c.access.Limits.Rate; math.IsNaN(r) || math.IsInf(r, 0) {
		return terminal.Usagef("--rate cannot be %v: expected a number of requests in a second", r)
	}
	if err := errors.Join(c.checkEngine(), c.checkBatches()); err != nil {
		return err
	}
	c.access.Keys = os.Getenv("QTYPE_API_KEYS")
	log := c.logger()
	c.access.Logger = log
	control, err := access.New(c.access)
	if err != nil {
		return terminal.Usagef("%s", err)
	}
	if err := access.CheckListen(c.access.Host, control.Authenticated(), c.insecure); err != nil {
		return terminal.Usagef("%s", err)
	}
	if c.batches != "" {
		if c.waves, err = waves.OpenShared(c.batches, c.gather); err != nil {
			return fmt.Errorf("--batches: %w", err)
		}
		defer func() { err = errors.Join(err, c.waves.Close()) }()
		ctx = waves.With(ctx, c.waves.Run)
	}
	p, list := qtype.Check(ctx, path, c.grants.Options(qtype.WithStrict())...)
	if err := list.Err(); err != nil {
		return err
	}
	if validate.DeclaresNothing(p.Document) {
		return fmt.Errorf("%s declares nothing to serve: add a flow", path)
	}
	if control.Authentication() != "oidc" {
		c.warnRoles(p.Document.Application)
	}
	app, err := c.open(p)
	if err != nil {
		return err
	}
	options := server.Options{Access: control, Log: log, Version: cli.Version(), NoUI: c.noUI, Reload: c.reload, Batches: c.waves, Telemetry: telemetry.PartsOf(ctx)}
	if !control.Authenticated() && access.CheckListen(c.access.Host, false, false) == nil {
		options.Test = testMaker(path)
	}
	closeEngine, err := c.openEngine(ctx, app, path, &options)
	if err != nil {
		appflags.CloseApp(ctx, app, &err)
		return err
	}
	s := server.New(app, options)
	defer func() { appflags.CloseApp(ctx, s.App(), &err) }() // perhaps another one by then
	defer closeEngine()
	return c.serve(ctx, s, p, path)
}

// warnRoles warns of calls that nobody can approve: only tokens of an OpenID provider have roles.
func (c *serveCommand) warnRoles(app *spec.Application) {
	warned := map[*spec.Approval]bool{}
	for _, f := range app.Flows {
		for s := range f.Plan().All() {
			for _, entry := range s.DecidedByRoles() {
				if warned[entry] {
					continue
				}
				warned[entry] = true
				fmt.Fprintf(c.Err, "warning: %s: nobody has %s without --oidc-issuer: calls of tool %s cannot be approved\n",
					entry.Position().Span(), textfmt.List(entry.By), terminal.Clean(entry.Tool.ID))
			}
		}
	}
}

// checkEngine rejects flags that an engine does not have.
func (c *serveCommand) checkEngine() error {
	isTemporal := c.engine.Value == durable.Temporal
	switch {
	case !isTemporal:
	case c.reload:
		return terminal.Usagef("--reload and --engine temporal exclude each other: workers keep the document that they were started with")
	case c.ephemeral:
		return terminal.Usagef("--ephemeral and --engine temporal exclude each other: the rows run in other processes")
	}
	return c.temporal.Check(isTemporal)
}

// defaultGather is how long calls are gathered for a batch.
const defaultGather = time.Minute

// checkBatches rejects flags that batches do not have.
func (c *serveCommand) checkBatches() error {
	switch {
	case c.gather < 0:
		return terminal.Usagef("--batch-gather cannot be %s: expected a duration of 0 or more", c.gather)
	case c.batches == "" && c.gather != defaultGather:
		return terminal.Usagef("--batch-gather needs --batches")
	case c.batches == "":
	case c.ephemeral:
		return terminal.Usagef("--ephemeral and --batches exclude each other: runs that wait for batches are stored")
	case c.engine.Value == durable.Temporal:
		return terminal.Usagef("--batches and --engine temporal exclude each other: workers make all calls at once")
	}
	return nil
}

// openEngine lets workers run the rows of requests, if the user wants that.
func (c *serveCommand) openEngine(ctx context.Context, app *runtime.App, path string, o *server.Options) (closeEngine func(), err error) {
	if c.engine.Value != durable.Temporal {
		return func() {}, nil
	}
	engine, err := durable.From(ctx)
	if err != nil {
		return nil, err
	}
	cfg, err := c.temporal.At(path)
	if err != nil {
		return nil, err
	}
	s, err := engine.Serve(ctx, cfg, o.Log)
	if err != nil {
		return nil, err
	}
	s.Check(ctx, app)
	o.Engine = s
	return s.Close, nil
}

func (c *serveCommand) open(p *qtype.Program) (*runtime.App, error) {
	opts, err := c.place.Options(c.ephemeral)
	if err != nil {
		return nil, err
	}
	audit, err := c.audit.Options()
	if err != nil {
		return nil, err
	}
	opts = append(opts, audit...)
	opts = append(opts, qtype.WithLog(c.Logger("")), qtype.WithWarnings(c.Logger("warning: ")))
	if c.ephemeral {
		if c.store == nil {
			c.store = server.KeepOpen(inprocess.New())
		}
		opts = append(opts, qtype.WithStore(c.store))
	}
	return qtype.New(p, opts...)
}

// logger returns the log of the server.
func (c *serveCommand) logger() *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.logLevel.String())) // the flag has known values only
	o := &slog.HandlerOptions{Level: level}
	if c.logFormat.String() == "json" {
		return slog.New(slog.NewJSONHandler(c.Err, o))
	}
	return slog.New(slog.NewTextHandler(c.Err, o))
}

// serve serves an application until ctx ends.
func (c *serveCommand) serve(ctx context.Context, s *server.Server, p *qtype.Program, path string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(c.access.Host, strconv.Itoa(c.port)))
	if err != nil {
		return fmt.Errorf("cannot listen on port %d of %s: %w", c.port, c.access.Host, err)
	}
	if c.reload {
		watched, stop := context.WithCancel(ctx)
		defer stop()
		go s.Watch(watched, filesOf(p, path), c.loader(path), c.reportReload(path))
	}
	return s.Serve(ctx, l, c.drain, func() {
		scheme := "http"
		if c.access.TLS.CertFile != "" || len(c.access.TLS.Domains) > 0 {
			scheme = "https"
		}
		fmt.Fprintf(c.Err, "serving %s on %s://%s/ (Ctrl-C ends it)\n", terminal.Clean(p.Document.Application.ID), scheme, l.Addr())
	})
}

// filesOf returns the files whose changes are a new version of a document: those that it
// consists of, and the environment files, which need not exist.
func filesOf(p *qtype.Program, path string) []string {
	files := []string{".env"}
	if dir := filepath.Dir(path); dir != "." {
		files = append(files, filepath.Join(dir, ".env"))
	}
	for _, f := range p.Files {
		files = append(files, f.Path)
	}
	return files
}

// loader reads the document again.
func (c *serveCommand) loader(path string) server.Loader {
	return func(ctx context.Context) (*runtime.App, []string, *server.ReloadError) {
		p, list := qtype.Check(ctx, path, c.grants.Reload(qtype.WithStrict())...)
		if list.Err() != nil {
			return nil, filesOf(p, path), &server.ReloadError{Message: fmt.Sprintf("%s has errors", path), Diagnostics: list}
		}
		app, err := c.open(p)
		if err != nil {
			return nil, filesOf(p, path), &server.ReloadError{Message: err.Error(), Diagnostics: diag.FromError(err)}
		}
		return app, filesOf(p, path), nil
	}
}

// reportReload prints the result of a reload.
func (c *serveCommand) reportReload(path string) func(*server.ReloadError) {
	return func(rejected *server.ReloadError) {
		switch {
		case rejected == nil:
			fmt.Fprintf(c.Err, "%s: reloaded\n", terminal.Clean(path))
		case len(rejected.Diagnostics) > 0:
			c.Report(rejected.Diagnostics)
			fmt.Fprintf(c.Err, "%s: not reloaded; the former document is served\n", terminal.Clean(path))
		default:
			c.Report(errors.New(rejected.Message))
		}
	}
}
