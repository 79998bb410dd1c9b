package e2e_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// reaches are the functions and types by which code reaches a file, the environment, a
// program or a server.
var reaches = []string{
	"os.Open", "os.OpenFile", "os.OpenRoot", "os.OpenInRoot", "os.ReadFile", "os.ReadDir", "os.DirFS", "os.Create", "os.CreateTemp", "os.MkdirTemp", "os.WriteFile",
	"os.Getenv", "os.LookupEnv", "os.Environ", "os.StartProcess", "exec.Command", "exec.CommandContext",
	"http.Client", "http.Transport", "http.DefaultClient", "http.DefaultTransport", "http.Get", "http.Post", "http.Head", "http.PostForm",
	"net.Dial", "net.DialTimeout", "net.Dialer", "sql.Open", "sql.OpenDB", "stdlib.OpenDB", "filepath.WalkDir", "filepath.Walk", "filepath.Glob",
	"tls.LoadX509KeyPair", "config.LoadDefaultConfig", "driver.NewClient", "pgxpool.New", "pgxpool.NewWithConfig",
}

// asked are the functions that reach something for a document, and where package trust is
// asked about it.
var asked = map[string]string{
	"distribution/index/remote/client.go:NewClient":          "httpx.DialContext and httpx.Proxy",
	"distribution/index/pgvector/pgvector.go:New":            "distribution/index/servers newPGVector",
	"distribution/index/servers/opensearch.go:certificates":  "serverConfig",
	"index/store/store.go:open":                              "App.Getenv",
	"internal/accesstoken/accesstoken.go:Client":             "New of awsauth and azureauth, and googleauth.Allowed",
	"internal/awsauth/awsauth.go:Endpoint":                   "App.Getenv",
	"distribution/awssdk/awssdk.go:New":                      "Options.Policy",
	"internal/azureauth/azureauth.go:New":                    "Options.Policy",
	"internal/azureauth/azureauth.go:newRequest":             "New",
	"internal/documents/directory.go:list":                   "the function itself",
	"internal/documents/directory.go:read":                   "the function itself",
	"internal/googleauth/googleauth.go:New":                  "Allowed",
	"internal/googleauth/googleauth.go:configuration":        "Allowed",
	"internal/httpx/transport.go:Dialer":                     "DialContext",
	"internal/httpx/transport.go:Transport":                  "DialContext and Proxy",
	"internal/records/open.go:openFile":                      "the function itself",
	"distribution/redisclient/redisclient.go:New":            "only tests call it",
	"distribution/redisclient/redisclient.go:Parse":          "distribution/index/servers redisServer, App.storeAt and App.openDeclared",
	"distribution/buckets/azure.go:azureFromEnvironment":     "Client.Open, Create and List",
	"distribution/buckets/google.go:openGoogle":              "Client.Open, Create and List",
	"distribution/buckets/s3.go:openS3":                      "Client.Open, Create and List",
	"internal/remotefs/http.go:declaration":                  "a name of the type; made in http",
	"internal/remotefs/http.go:http":                         "httpx.DialContext and httpx.Proxy",
	"internal/remotefs/local.go:checkWritable":               "Client.Create",
	"internal/remotefs/local.go:commit":                      "Client.Create",
	"internal/remotefs/local.go:createLocal":                 "Client.Create",
	"internal/remotefs/written.go:create":                    "Client.Create",
	"internal/remotefs/local.go:openLocal":                   "Client.Open",
	"internal/rerank/builders.go:withDefaults":               "findKey sends keys to their own server only",
	"internal/rerank/server.go:NewClient":                    "httpx.DialContext and httpx.Proxy",
	"internal/secrets/secrets.go:readFile":                   "newFiles",
	"internal/secrets/secrets.go:New":                        "newEnvironment",
	"internal/sqldb/access.go:openPool":                      "Open",
	"distribution/sqldb/duckdb/duckdb.go:Open":               "Open",
	"distribution/sqldb/remote/client.go:NewClient":          "Open, httpx.Transport",
	"distribution/sqldb/remote/driver.go:Open":               "Open",
	"distribution/sqldb/snowflake/key.go:readKey":            "Open",
	"distribution/sqldb/servers/sqlserver.go:openSQLServer":  "Open, azureauth.New",
	"distribution/sqldb/servers/mysql.go:mysqlTLS":           "Open",
	"distribution/sqldb/servers/mysql.go:openMySQL":          "Open",
	"distribution/sqldb/servers/postgres.go:openPostgres":    "Open",
	"internal/sqldb/connect.go:openSQLite":                   "Open",
	"internal/sqlitefile/sqlitefile.go:connectOnce":          "App.storeAt, App.openDeclared, openEmbedded and App.cacheOf",
	"internal/sqlitefile/readonly.go:openReadOnly":           "like connectOnce",
	"internal/sqlitefile/readonly.go:checkDescriptors":       "like connectOnce",
	"internal/sqlitefile/sqlitefile.go:ignoreInGit":          "like connectOnce",
	"internal/sqlitefile/sqlitefile.go:prepareFile":          "like connectOnce",
	"internal/sqlitefile/sqlitefile.go:setPageSize":          "like connectOnce",
	"internal/remotefs/written.go:removeAbandoned":           "Client.Create",
	"internal/remotefs/lock_unix.go:removeUnlocked":          "Client.Create",
	"internal/subprocess/supervisor.go:Command":              "Factory.checkProgram",
	"internal/telemetry/exporter.go:newClient":               "the endpoint is that of the user; that of a document: destination.read",
	"internal/telemetry/feedback.go:NewFeedback":             "destination.read",
	"internal/tokenizer/tokenfile/tokenfile.go:read":         "loader decodeTokenizer",
	"loader/catalogue.go:catalogueFiles":                     "the function itself",
	"loader/env.go:environment":                              "builder.allowedVariable",
	"loader/env.go:readDotEnv":                               "builder.allowedVariable",
	"loader/read.go:open":                                    "reader.allowed",
	"loader/read.go:openBelow":                               "reader.allowed",
	"loader/read.go:openDescriptor":                          "reader.allowed, in open",
	"distribution/memory/postgres/store.go:connections":      "App.storeAt and App.openDeclared",
	"distribution/hugot/folder.go:findModel":                 "prepare of internal/model/provider",
	"distribution/hugot/folder.go:readJSON":                  "prepare of internal/model/provider",
	"distribution/hugot/folder.go:readSettings":              "prepare of internal/model/provider",
	"internal/model/wire/wire.go:NewServer":                  "the client of the application: policyTransport",
	"distribution/model/langchain/transport.go:fixTransport": "the client of the application: policyTransport",
	"internal/waves/transport.go:client":                     "findCredential, and policyTransport",
	"internal/model/provider/provider.go:withDefaults":       "findCredential, and policyTransport",
	"internal/auditlog/auditlog.go:open":                     "App.auditor; the log of tools is a flag of the user",
	"runtime/new.go:New":                                     "policyTransport, and App.Getenv",
	"internal/tool/python/python.go:Source":                  "Factory.checkProgram",
	"internal/tool/python/python.go:folders":                 "Factory.checkProgram",
	"internal/signin/signin.go:Load":                         "newLoginTokens of tool, and Login of internal/tool/mcp",
	"internal/signin/signin.go:Save":                         "newLoginTokens of tool, and Login of internal/tool/mcp",
	"tool/ssrf_guard.go:newHTTPClient":                       "httpx.DialContext and httpx.Proxy",
}

// unrelated are those that reach what no document names: files of the user, of the program
// or of tests.
var unrelated = map[string]string{
	"internal/batch/on_end.go:notify":                     "a program that the command line names",
	"internal/batch/on_end.go:post":                       "an address that the command line names",
	"internal/wordvectors/convert/main.go:convert":        "a program for those who develop this one",
	"internal/authoring/trust.go:readLimits":              "the policy of the organization, and the state of the user",
	"internal/trust/seen.go:StateFolder":                  "the state of the user",
	"internal/cli/author/diff.go:run":                     "commits and files of the user's repository",
	"internal/cli/appflags/appflags.go:Path":              "a flag or a setting of the user",
	"internal/localruns/files.go:EachFile":                "files of the user",
	"distribution/converters/converters.go:programFiles":  "a file or folder that the user converts; links in it are not followed",
	"internal/cleanup/files.go:isTrace":                   "files of the user",
	"internal/remotefs/lock_unix.go:IsWritten":            "files of the user, for qtype clean",
	"internal/waves/lock_unix.go:lockFile":                "the file of --batches of qtype serve",
	"internal/waves/lock_other.go:lockFile":               "the file of --batches of qtype serve",
	"internal/eval/evalrun/files.go:write":                "a flag or a setting of the user",
	"internal/eval/evalrun/annotation.go:ReadAnnotations": "a file that the user names",
	"internal/cli/process.go:setGCPercent":                "a flag or a setting of the user",
	"internal/command/mcp.go:assist":                      "a flag or a setting of the user",
	"internal/command/eval_from.go:make":                  "a flag or a setting of the user",
	"internal/command/test_from.go:write":                 "a flag or a setting of the user",
	"internal/terminal/streams.go:Open":                   "a flag or a setting of the user",
	"internal/cli/appflags/temporal.go:addSecurityTo":     "a flag or a setting of the user",
	"internal/cli/appflags/temporal.go:AddTo":             "a flag or a setting of the user",
	"internal/cli/appflags/temporal.go:Connection":        "a flag or a setting of the user",
	"internal/cli/state/runs.go:source":                   "a flag or a setting of the user",
	"internal/command/serve.go:run":                       "a flag or a setting of the user",
	"internal/authoring/authoring.go:Change":              "a lookup, filtered by the loader",
	"internal/cli/author/validate.go:today":               "a variable of the user, which no document names",
	"internal/cli/author/models.go:readSource":            "a file or an address that the user names",
	"internal/cli/author/models.go:readLocal":             "a file or an address that the user names",
	"loader/catalogue.go:readRows":                        "a file that the user names by QTYPE_MODELS",
	"loader/read.go:nearFile":                             "the folder of a file that the user names",
	"internal/batch/input_value.go:readValue":             "a file that the user names",
	"internal/chatui/files.go:fileNames":                  "files that the user names",
	"internal/chatui/files.go:readAttachment":             "a file that the user names",
	"internal/chatui/files.go:save":                       "a file that the user names",
	"internal/chatui/screen/history.go:OpenHistory":       "what the user has typed",
	"internal/chatui/screen/history.go:write":             "what the user has typed",
	"internal/checkpoint/frame.go:digestOf":               "the journal of the user",
	"internal/checkpoint/open.go:openRegular":             "the journal of the user, and its key",
	"internal/checkpoint/fingerprint.go:makeKey":          "the key of the user",
	"internal/clienttool/clienttool.go:Program":           "a flag of the user",
	"internal/clienttool/suspension.go:IsSuspension":      "files of the user",
	"internal/clienttool/suspension.go:ReadSuspension":    "files of the user",
	"internal/clienttool/suspension.go:OpenSuspension":    "a flag of the user",
	"internal/clienttool/suspension.go:write":             "a flag of the user",
	"internal/docgen/value.go:readKeyDocuments":           "generates documentation",
	"internal/docgen/sample.go:readSamples":               "generates documentation",
	"distribution/temporal/client.go:loadTLS":             "a flag or a setting of the user",
	"distribution/temporal/client.go:dialMeasured":        "a flag or a setting of the user",
	"distribution/temporal/blobs.go:createFile":           "the folder for blobs that the user names",
	"distribution/temporal/journal.go:syncFolder":         "the folder for blobs that the user names",
	"distribution/temporal/waves.go:runWaves":             "a temporary folder",
	"distribution/temporal/blobs.go:list":                 "the folder for blobs that the user names",
	"internal/erasure/erasure.go:journalsIn":              "journals of the user",
	"internal/estimate/estimate.go:Run":                   "temporary, or refuses all requests",
	"internal/estimate/estimate.go:index":                 "temporary, or refuses all requests",
	"internal/eval/evalrun/report.go:ReadReport":          "a file that the user names",
	"internal/eval/optimize/report.go:write":              "a flag or a setting of the user",
	"internal/eval/optimize/report.go:Apply":              "the document of the user, with --write",
	"internal/httpx/transport.go:CheckProxied":            "a setting of the user",
	"internal/lsp/navigate.go:proposePaths":               "the editor of the user",
	"internal/lsp/settings.go:filesIn":                    "the editor of the user",
	"internal/lsp/workspace.go:openFile":                  "the editor of the user",
	"internal/mediafile/open.go:local":                    "a file that the user names in an input",
	"internal/playground/build/main.go:addCompressed":     "builds the playground page",
	"internal/playground/build/main.go:addProgram":        "builds the playground page",
	"internal/playground/build/main.go:addWorker":         "builds the playground page",
	"internal/playground/build/main.go:addSchema":         "builds the playground page",
	"internal/playground/build/main.go:write":             "builds the playground page",
	"internal/recording/calls/calls.go:Open":              "recordings of tests",
	"internal/recording/calls/calls.go:replaceFile":       "recordings of tests",
	"internal/recording/http.go:Client":                   "recordings of tests",
	"internal/records/create.go:temporary":                "a temporary file",
	"internal/scaffold/scaffold.go:create":                "a new project of the user",
	"internal/server/access/control.go:New":               "a setting of the operator",
	"internal/server/access/token.go:fetch":               "a setting of the operator",
	"internal/server/access/keys.go:readPrivate":          "a setting of the operator",
	"internal/server/access/listen.go:load":               "a setting of the operator",
	"internal/server/access/token.go:newTokenVerifier":    "a setting of the operator",
	"internal/subprocess/supervise_linux.go:children":     "the processes of this one",
	"internal/telemetry/exporter.go:enabled":              "settings of OpenTelemetry of the user",
	"internal/telemetry/exporter.go:environmentEndpoint":  "settings of OpenTelemetry of the user",
	"internal/telemetry/exporter.go:tlsConfig":            "settings of OpenTelemetry of the user",
	"internal/telemetry/exporter.go:variable":             "settings of OpenTelemetry of the user",
	"internal/telemetry/exporter.go:hidesContent":         "settings of OpenTelemetry of the user",
	"internal/telemetry/exporter.go:newExporter":          "settings of OpenTelemetry of the user",
	"internal/terminal/streams.go:Standard":               "the terminal of the user",
	"internal/terminal/streams.go:WriteTo":                "the terminal of the user",
	"internal/traceview/trace.go:New":                     "a file that the user names",
	"internal/trust/record.go:Find":                       "the state of the user",
	"internal/trust/record.go:Save":                       "the state of the user",
	"place.go:dataFolder":                                 "the default store of the user",
	"place.go:findPlace":                                  "the default store of the user",
	"place.go:isWritable":                                 "the default store of the user",
	"loader/env.go:SetVariables":                          "names without values, for the editor of the user",
	"internal/lint/document.go:filesIn":                   "files that the user checks",
	"internal/lint/fix.go:Write":                          "files that the user checks",
	"internal/lint/fix.go:applyTo":                        "files that the user checks",
	"internal/lint/fix.go:replace":                        "files that the user checks",
	"internal/lint/rewrite.go:reformatFile":               "files that the user checks",
	"internal/lint/watch.go:recheck":                      "names of files that are watched; the loader reads them",
	"internal/lint/markdown.go:readPage":                  "files that the user checks",
}

// TestTrust_EveryPath finds all functions of the module that reach a file, the environment,
// a program or a server. A new one calls package trust, which decides what the document may do, or is
// listed with the reason why no document decides about it.
func TestTrust_EveryPath(t *testing.T) {
	found := map[string]bool{}
	walkSource(t, func(path string) error { return findReaches(path, found) }, "generate", "testkit", "extension")
	for _, place := range slices.Sorted(maps.Keys(found)) {
		if asked[place] == "" && unrelated[place] == "" {
			t.Errorf("%s is not listed: ask the trust.Policy of the document there, and add it to the tables of this test", place)
		}
	}
	for _, table := range []map[string]string{asked, unrelated} {
		for place := range table {
			if !found[place] {
				t.Errorf("%s is listed, but reaches nothing", place)
			}
		}
	}
}

// findReaches adds the functions of a file that reach something: path:function.
func findReaches(path string, found map[string]bool) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	rel := filepath.ToSlash(path)
	for _, declared := range file.Decls {
		name := "declaration"
		if f, ok := declared.(*ast.FuncDecl); ok {
			name = f.Name.Name
		}
		ast.Inspect(declared, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, ok := selector.X.(*ast.Ident)
			if ok && slices.Contains(reaches, of.Name+"."+selector.Sel.Name) && isUse(declared, selector) {
				found[rel+":"+name] = true
			}
			return true
		})
	}
	return nil
}

// isUse reports whether a selector is a value or a call, and not the type of a parameter, a
// field or a pointer.
func isUse(within ast.Node, selector *ast.SelectorExpr) bool {
	use := true
	ast.Inspect(within, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StarExpr:
			use = use && n.X != selector
		case *ast.Field:
			use = use && n.Type != selector
		case *ast.TypeAssertExpr:
			use = use && n.Type != selector
		}
		return use
	})
	return use
}
