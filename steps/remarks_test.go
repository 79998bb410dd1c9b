package steps_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// remark is one thing that the contract of steps (steps.md 1, 3, 4, 5) says of
// other runtimes, or wants to be better, and the tests that hold us to it: a
// folder below the module's top and the name of a test.
type remark struct {
	about string // the section and what it says
	tests string // "steps.TestX tool.TestY"; a dot alone for the top folder
}

func remarks() []remark {
	return []remark{
		{"1 variables: a step adds its outputs, everything else stays", "steps.TestExplodeMakesARowOfEachElement steps.TestSQLSource"},
		{"1 unset differs from null, and fails where it is read", "steps.TestAnUnsetInputMattersOnlyWhereItIsUsed steps.TestEchoMakesUnsetNull steps.TestSQLSource"},
		{"1 types: files, queries, Construct and Transform hold values to them", "steps.TestFileSourceCoercesAndGoesOn steps.TestSQLSource steps.TestConstructBindsByField steps.TestTransformHoldsValuesToTheirTypes"},
		{"1 failed rows move to the end: ours keep their place", "runtime.TestAFailedRowKeepsItsPlaceAndIsNotTouchedAgain"},
		{"1 order is lost with workers: ours is kept", "runtime.TestWorkersKeepTheOrderOfRows"},
		{"1 laziness: a row goes through before the next is read", "runtime.TestAStageHoldsNoMoreThanItsWindow"},
		{"1 zero rows: an Aggregate still tells its summary", "steps.TestAggregateCountsAllRows steps.TestCollectKeepsWhatAllRowsAgreeIn"},
		{"1 row error: the step's id and the message", ".TestRowsThroughDataSteps"},
		{"1 crash safety: every failure costs one row", "runtime.TestFaults"},
		{"1.1 concurrency blocks the loop: ours is real", "runtime.TestWorkersWorkAtOnce"},
		{"1.2 batches: in order, the last smaller, failed rows left out", "runtime.TestABatchHoldsItsGroupAndTheLastMayBeSmaller steps.TestFileWriterNumbersItsParts"},
		{"3 Decoder: fences of any label, and prose around", "steps.TestDecoderReadsWhatModelsWrite steps.TestDecoderPrefersWhatHasAnOutput"},
		{"3 Decoder: NaN, equal keys", "steps.TestDecoderReadsNaN steps.TestDecoderReadsWhatModelsWrite"},
		{"3 Decoder: coerced to declared types, optional outputs honoured", "steps.TestDecoderReadsWhatModelsWrite"},
		{"3 Decoder: entities of XML, raw ampersands, CDATA, namespaces", "steps.TestDecoderReadsXML"},
		{"3 FieldExtractor: a list of records can be looked into", "steps.TestFieldExtractorOnRecordsAndTexts"},
		{"3 FieldExtractor: matches in order, null, none, lists, records", "steps.TestFieldExtractor"},
		{"3 FieldExtractor: a bad path ends the start, at its place", "steps.TestFieldExtractorRefusesBadPaths"},
		{"3 Explode: no list fails the row", "steps.TestExplodeMakesARowOfEachElement"},
		{"3 Collect: an unset input fails its row alone; the output wins", "steps.TestCollectKeepsWhatAllRowsAgreeIn"},
		{"3 Collect: by parent row, not over the whole stream", ".TestCollectBy steps.TestCollectTogether"},
		{"3 Construct: a single binding makes a field, not the record", "steps.TestConstructBindsByField"},
		{"3 Echo: unset becomes null", "steps.TestEchoMakesUnsetNull"},
		{"3 Aggregate: counts failed rows, keeps the last session", "steps.TestAggregateCountsAllRows .TestAggregateCountsFailedRowsToo"},
		{"3 InvokeFlow: bound inputs in, bound outputs out", ".TestAnInvokedFlowSeesItsInputsAndReturnsItsOutputsOnly steps.TestInvokeFlowPassesBoundValuesOnly"},
		{"4 InvokeTool: arguments and results", "steps.TestInvokeTool"},
		{"4.1 APITool: places in the path, query, ISO dates, JSON booleans", "tool.TestWhereArgumentsGo tool.TestAValueStaysInItsPlace tool.TestArgumentsThatDoNotFit"},
		{"4.1 APITool: bodies that are no JSON, the body of an error", "tool.TestResults tool.TestFailures"},
		{"4.1 APITool: timeouts, retries", "tool.TestSlowAndCancelled tool.TestFailures"},
		{"4.1 APITool: credentials", "tool.TestCredentialsStayWithTheirServer"},
		{"5 FileSource: upstream variables are kept", "steps.TestFileSourceCoercesAndGoesOn"},
		{"5 FileSource: an empty or unset path fails the row", "steps.TestFileSourceTakesItsPathFromAVariable"},
		{"5 FileSource: a missing column, a bad cell fail rows; optional honoured", "steps.TestFileSourceCoercesAndGoesOn steps.TestFileSourceReadsWorkbooks"},
		{"5 FileSource: lists of a custom type", "steps.TestFileSourceCoercesAndGoesOn"},
		{"5 FileSource: CSV is text, read as declared; 007, NA, empty cells", "steps.TestFileSourceCoercesAndGoesOn"},
		{"5 FileSource: a plain JSON object; columns named like dates", "steps.TestFileSourceReadsPlainJSON"},
		{"5 FileSource: by extension, then by content; JSON lines, Parquet, Excel", "records.TestReadText records.TestOpenRefuses records.TestExcel records.TestReadForeignParquet"},
		{"5 FileSource: an empty file fails the row, a header alone gives none", "records.TestOpenRefuses steps.TestFileSourceCoercesAndGoesOn"},
		{"5 FileSource: addresses", "records.TestRemote steps.TestFileSourceReadsAddresses"},
		{"5 SQLSource: NULL, types, columns, order, what the row had", "steps.TestSQLSource steps.TestSQLSourceServers database.TestTypes"},
		{"5 SQLSource: bound parameters", "database.TestParameters query.TestBound"},
		{"5 SQLSource: pooled connections, a streaming cursor", "database.TestStreams database.TestPool"},
		{"5 SQLSource: errors are the row's, a dialect that is not there the start's", ".TestSQLSourceRowErrors database.TestErrors steps.TestSQLSourceBuild"},
		{"5 SQLSource: URLs of SQLAlchemy", "query.TestParseURL"},
		{"5 FileWriter: the format of the name; inputs as columns; no output needed", "steps.TestFileWriterWritesWhatItIsGiven steps.TestFileWriterPacksItsParts"},
		{"5 FileWriter: later batches go to parts, not over the first", "steps.TestFileWriterNumbersItsParts"},
		{"5 FileWriter: paths of rows; an unset one fails the row", "steps.TestFileWriterGroupsByPath"},
		{"5 FileWriter: a file that cannot be written fails its rows", "steps.TestFileWriterFailsItsRows"},
		{"5 FileWriter: never half a file", "records.TestNothingHalfUnderTheName"},
	}
}

// Every remark has its tests, and they exist.
func TestRemarks(t *testing.T) {
	known := map[string]bool{}
	for _, folder := range []string{"", "steps", "tool", "runtime", "records", "database", "query"} {
		files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range parsed.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					known[folder+"."+f.Name.Name] = true
				}
			}
		}
	}
	for _, r := range remarks() {
		tests := strings.Fields(r.tests)
		if len(tests) == 0 {
			t.Errorf("%s: no test holds it", r.about)
		}
		for _, name := range tests {
			if !known[name] {
				t.Errorf("%s: there is no test %s", r.about, name)
			}
		}
	}
}
