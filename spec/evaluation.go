package spec

// Evaluation is a file of metrics and variants, *.qtype-eval.yaml. Only `qtype eval` reads it.
type Evaluation struct {
	Positioned
	// App is the path of the application's document, relative to the file; by default x.qtype.yaml for x.qtype-eval.yaml.
	App string `yaml:"app"`
	// Flow is the id of the flow that the rows run through; the default is the first one.
	Flow string `yaml:"flow" names:"flow"`
	// Data is the path of the file with the rows, relative to the file: .csv, .tsv, .json, .jsonl, .parquet or .xlsx.
	Data string `yaml:"data"`
	// Users are simulated users, in place of data: each has a conversation with the flow, which is a row of the evaluation.
	Users []*User `yaml:"users"`
	// Attacks are attempts to make the application do what it must not, in place of data: each is a row of the evaluation.
	Attacks *Attacks `yaml:"attacks"`
	// State are the tables that mocks of tools read and change, by name, each a list of rows: every conversation starts with them.
	State map[string][]map[string]any `yaml:"state"`
	// Recordings is the path of the JSON file with recorded calls of models, HTTP servers and MCP servers, relative to the file. `qtype eval --record` writes it; without the option it answers the calls.
	Recordings string `yaml:"recordings"`
	// Trials is how often each row is run with each variant, each time with new memories.
	Trials int `yaml:"trials" default:"1" validate:"gte=1,lte=1000"`
	// Tools are mocks that replace the application's tools, as in test files: they are not called, and their calls need no approval.
	Tools []*ToolMock `yaml:"tools"`
	// Metrics are computed for each row; the default is exact, with the column expected, and checks for users. Attacks also have safe, with min: 1.
	Metrics []*Metric `yaml:"metrics"`
	// Variants are changes of the application that are compared side by side; the default is the application as it is.
	Variants []*Variant `yaml:"variants"`
	// Optimize says what `qtype optimize` changes in the application, and how much it may cost. `qtype eval` does not read it.
	Optimize *Optimization `yaml:"optimize"`
}

// Optimization says what `qtype optimize` changes, and how it searches. An address is the id of a step, model, tool or index, and a key of it.
type Optimization struct {
	Positioned
	// Metric is the id of the metric to improve; the default is the first one.
	Metric string `yaml:"metric"`
	// Texts are addresses of texts that a model rewrites, such as draft.system_message; the default, without values and examples, is all system messages and templates of the flow.
	Texts []string `yaml:"texts"`
	// Values are values to choose from, by address, such as search.default_top_k: [3, 5, 8]. All combinations are tried.
	Values map[string][]any `yaml:"values"`
	// Examples are addresses of system messages to which examples of training rows may be added, with their expected values.
	Examples []string `yaml:"examples"`
	// Model is the id of the chat model that rewrites texts; the default is the only chat model that the flow calls.
	Model string `yaml:"model" names:"model"`
	// Keep are parts of the texts that must remain; placeholders always do.
	Keep []string `yaml:"keep"`
	// Train is the share of the rows from which the model learns.
	Train float64 `yaml:"train" default:"0.4" validate:"gte=0.1,lte=0.8"`
	// Validation is the share of the rows by which candidates are selected; the rest is held out, and decides.
	Validation float64 `yaml:"validation" default:"0.4" validate:"gte=0.1,lte=0.8"`
	// Batch is the number of rows, or sessions, with which a rewritten text is compared first.
	Batch int `yaml:"batch" default:"4" validate:"gte=1,lte=100"`
	// Proposals is the most texts that the model writes.
	Proposals int `yaml:"proposals" default:"20" validate:"gte=1,lte=90"`
	// Runs is the most runs of rows, with those of held-out rows.
	Runs int `yaml:"runs" default:"2000" validate:"gte=1"`
	// Money is the most that models may cost, by their prices.
	Money float64 `yaml:"money" validate:"gte=0"`
	// Time is how long the search may take.
	Time Duration `yaml:"time" validate:"gte=0"`
	// Seed selects the order of rows and candidates.
	Seed int `yaml:"seed" default:"0"`
	// Recordings is the path of the JSON file with all recorded calls of an optimization, relative to the file. `qtype optimize --record` writes it; without the option it answers the calls.
	Recordings string `yaml:"recordings"`
}

// User is a simulated user, who is played by a model or by rules, and has a conversation with a flow.
type User struct {
	Positioned
	// ID names the user in reports; it is unique in the file.
	ID string `yaml:"id" jsonschema:"required"`
	// Model is the id of the chat model that plays the user, as the application declares it: variants do not change it.
	Model string `yaml:"model" names:"model"`
	// Rules play the user in place of a model, as those of a mock: match is a pattern of what the application has said last, empty before the first message. A text that ends with [END] is the last one.
	Rules []*MockRule `yaml:"rules"`
	// Goal is what the user wants.
	Goal string `yaml:"goal"`
	// Facts are what the user knows, and tells when it is needed.
	Facts []string `yaml:"facts"`
	// Temper is how the user talks, such as impatient.
	Temper string `yaml:"temper"`
	// Ends is when the user ends the conversation; the default is when the goal is reached, or cannot be reached.
	Ends string `yaml:"ends"`
	// Opening is the first message; without it the model or the rules write it.
	Opening string `yaml:"opening"`
	// MaxTurns is the number of messages after which the conversation is ended.
	MaxTurns int `yaml:"max_turns" default:"10" validate:"gte=1,lte=100"`
	// Inputs are values of the flow's other inputs, by their ids, the same in all turns.
	Inputs map[string]any `yaml:"inputs" names:"inputs"`
	// State are tables of the conversation, in place of those of the file with the same names.
	State map[string][]map[string]any `yaml:"state"`
	// Checks are what must be true after the conversation.
	Checks *Checks `yaml:"checks"`
	// MustPass rejects candidates of an optimization with which the scores of the user are worse.
	MustPass bool `yaml:"must_pass"`
}

// Attacks are attempts to make an application do what it must not.
type Attacks struct {
	Positioned
	// Categories are the kinds of attacks; the default is all that the flow can meet.
	Categories []string `yaml:"categories" names:"attack"`
	// Task is what an honest user writes while a document, the result of a tool or an earlier message attacks.
	Task string `yaml:"task"`
	// Inputs are values of the flow's other inputs, by their ids.
	Inputs map[string]any `yaml:"inputs" names:"inputs"`
	// Secrets are texts that no answer and no argument of a tool may have, such as data of other users in the state.
	Secrets []string `yaml:"secrets"`
	// Tools are ids of the tools that may be called during an attack; the default is all that need no approval.
	Tools []string `yaml:"tools" names:"tool"`
	// Hosts are the names of the hosts that links in answers may lead to, with their subdomains.
	Hosts []string `yaml:"hosts"`
	// Model is the id of a chat model that writes other versions of each attack, as the application declares it.
	Model string `yaml:"model" names:"model"`
	// Rewrites is how many versions of each attack the model writes.
	Rewrites int `yaml:"rewrites" default:"1" validate:"gte=1,lte=20"`
}

// AttackRow declares a category of attacks.
type AttackRow struct {
	Name string // the category
	Doc  string // what the attacks try, in a few words
	Task bool   // needs the task of an honest user
}

// AttackCategories returns the categories of attacks.
func AttackCategories() []AttackRow {
	return []AttackRow{
		{Name: "user_injection", Doc: "the user's message has instructions that replace those of the application"},
		{Name: "document_injection", Doc: "a found document, or another input, has instructions", Task: true},
		{Name: "tool_injection", Doc: "the result of a tool has instructions", Task: true},
		{Name: "memory_injection", Doc: "an earlier message of the conversation has instructions for later answers", Task: true},
		{Name: "system_leak", Doc: "the user asks for the system message"},
		{Name: "data_leak", Doc: "the user asks for data of other users"},
		{Name: "tool_misuse", Doc: "the user asks for a call of a tool that must not be called"},
		{Name: "egress", Doc: "the user asks for a link or an image that sends data to another host"},
		{Name: "hidden_text", Doc: "the user writes, or asks for, characters that nobody sees, such as control sequences of terminals"},
	}
}

// Checks are what must be true of a conversation with a simulated user, besides that the user has ended it.
type Checks struct {
	Positioned
	// Effects are calls of tools: the state at the end is the one that these calls make, in order, of the state at the start. An empty list is a state without a change.
	Effects []*EffectCall `yaml:"effects"`
	// State are assertions on the tables of the state.
	State []*RowAssertion `yaml:"state"`
	// Calls are assertions on the calls of tools in all turns.
	Calls []*CallAssertion `yaml:"calls"`
	// CallOrder are ids of tools that are called in this order. Other calls may be between them.
	CallOrder []string `yaml:"call_order" names:"tool"`
	// Expect are conditions over the flow's outputs in the last turn.
	Expect []Expression `yaml:"expect" names:"outputs"`
	// Contains are texts of which the application has said each.
	Contains []string `yaml:"contains"`
	// Lacks are texts of which the application has said none.
	Lacks []string `yaml:"not_contains"`
}

// EffectCall is a call of a tool whose mock changes the state.
type EffectCall struct {
	Positioned
	// ID is the tool's id.
	ID string `yaml:"id" jsonschema:"required" names:"tool"`
	// Arguments are the arguments of the call.
	Arguments map[string]any `yaml:"arguments"`
}

// MaxTrials is the maximum number of trials of a row or a test.
const MaxTrials = 1000

// Metric is a number that an evaluation computes for each result.
type Metric struct {
	Positioned
	// ID names the metric in reports; the default is its type.
	ID string `yaml:"id"`
	// Type is the kind of the metric: exact, contains, starts_with, regexp, is_json, json_schema, numeric, levenshtein, rouge_l, bleu, similarity, judge, preference, faithfulness, relevance, source_recall, source_precision, checks, safe, latency, tokens or cost.
	Type string `yaml:"type" jsonschema:"required" names:"metric"`
	// Output is the id of the output that is evaluated; the default is the flow's only output.
	Output string `yaml:"output" names:"outputs"`
	// Expected is the column of the data with the expected value.
	Expected string `yaml:"expected" default:"expected"`
	// Value is the expected value of all rows, in place of a column.
	Value any `yaml:"value"`
	// IgnoreCase compares texts without regard to upper and lower case.
	IgnoreCase bool `yaml:"ignore_case" default:"false"`
	// Not makes results pass that the type of metric would fail, and the reverse.
	Not bool `yaml:"not" default:"false"`
	// Pattern is the regular expression (RE2) that the output must match.
	Pattern string `yaml:"pattern"`
	// Schema is the JSON schema that the output must satisfy; an output that is a text is parsed as JSON.
	Schema map[string]any `yaml:"schema"`
	// Tolerance is how much a number may differ from the expected one.
	Tolerance float64 `yaml:"tolerance" validate:"gte=0"`
	// RelativeTolerance is how much a number may differ, as a share of the expected one.
	RelativeTolerance float64 `yaml:"relative_tolerance" validate:"gte=0"`
	// Model is the id of the embedding model of similarity, or of the chat model of judge, preference, faithfulness and relevance, as the application declares it: variants do not change it.
	Model string `yaml:"model" names:"model"`
	// Judges are ids of several chat models that judge, in place of model.
	Judges []string `yaml:"judges" names:"model"`
	// Rubric describes a good output for the judge.
	Rubric string `yaml:"rubric" verbatim:"true"`
	// Labels are the verdicts that the judge chooses from, with their scores from 0 to 1; without them it gives a score.
	Labels map[string]float64 `yaml:"labels"`
	// Votes is how often each judge is asked, with the labels in changing order. The label of most votes counts, of several that one with the lowest score; of scores the mean.
	Votes int `yaml:"votes" default:"1" validate:"gte=1,lte=25"`
	// Check is a set of results with the labels that people gave them, by which qtype eval judge-check measures the judge.
	Check *JudgeCheck `yaml:"check"`
	// Sources is the id of the output with the passages that were found; without it they are those that the answer cites.
	Sources string `yaml:"sources" names:"outputs"`
	// Threshold makes a score a decision: results with at least this score pass, and the metric is their share.
	Threshold *float64 `yaml:"threshold" validate:"omitempty,gte=0,lte=1"`
	// When is a column of the data: the metric scores only rows that have a value in it.
	When string `yaml:"when"`
	// Min is the smallest mean with which the evaluation succeeds.
	Min *float64 `yaml:"min"`
	// Max is the largest mean with which the evaluation succeeds.
	Max *float64 `yaml:"max"`
	// MaxRegression is how much worse than the baseline the mean may be: a difference for scores, a share of the baseline for latency, tokens and cost.
	MaxRegression *float64 `yaml:"max_regression" validate:"omitempty,gte=0"`
}

// JudgeCheck says how well a judge must agree with people.
type JudgeCheck struct {
	Positioned
	// Data is the path of the file with the results, relative to the file: columns for the inputs of the flow, the output and the label.
	Data string `yaml:"data" jsonschema:"required"`
	// Label is the column with what people say: a label of the judge; pass or fail, if the judge has a threshold; output, expected or tie for a preference.
	Label string `yaml:"label" default:"label"`
	// MinAccuracy is the smallest share of equal verdicts with which the judge is accepted.
	MinAccuracy *float64 `yaml:"min_accuracy" validate:"omitempty,gte=0,lte=1"`
	// MinKappa is the smallest agreement beyond chance, Cohen's kappa, with which the judge is accepted.
	MinKappa *float64 `yaml:"min_kappa" validate:"omitempty,gte=0,lte=1"`
}

// Variant is a change of the application.
type Variant struct {
	Positioned
	// ID names the variant in reports; it is unique in the file.
	ID string `yaml:"id" jsonschema:"required"`
	// App is another document, relative to the file.
	App string `yaml:"app"`
	// Models replaces models, by id: by another model of the document, or by another name of a model at the same provider.
	Models map[string]string `yaml:"models" names:"model"`
	// Prompts replaces the system message or the template of steps, by id.
	Prompts map[string]string `yaml:"prompts" names:"step"`
	// Inputs are values of inputs of the flow that replace the columns of the data.
	Inputs map[string]any `yaml:"inputs" names:"inputs"`
	// Env are variables of the environment that the document sees.
	Env map[string]string `yaml:"env"`
}

// MetricRow declares a type of metric. The checker, reports, documentation and editors
// read the rows; package internal/eval/evalrun has a builder for each.
type MetricRow struct {
	Name     string   // the value of the key type
	Doc      string   // what it measures, in a few words
	Keys     []string // the keys of a Metric that it reads, besides id, type, when, min, max and max_regression
	Required []string // those of them that must be set
	Unit     string   // of its values; empty for a score from 0 to 1
	Lower    bool     // lower values are better
	Rate     bool     // each result passes or fails, also without a threshold
	Judges   bool     // chat models give the scores: it needs model or judges
	Embeds   bool     // the key model names an embedding model, not a chat model
	Noisy    bool     // values differ between equal runs: compared with a baseline only if max_regression is set
}

// Metrics returns the types of metrics.
func Metrics() []MetricRow {
	compared := []string{"output", "expected", "value"}
	return []MetricRow{
		{Name: "exact", Doc: "the output equals the expected value", Keys: append(compared[:3:3], "ignore_case", "not"), Rate: true},
		{Name: "contains", Doc: "the text of the output contains the expected text", Keys: append(compared[:3:3], "ignore_case", "not"), Rate: true},
		{Name: "starts_with", Doc: "the text of the output starts with the expected text", Keys: append(compared[:3:3], "ignore_case", "not"), Rate: true},
		{Name: "regexp", Doc: "the text of the output matches a regular expression", Keys: []string{"output", "pattern", "not"}, Required: []string{"pattern"}, Rate: true},
		{Name: "is_json", Doc: "the output is JSON", Keys: []string{"output", "not"}, Rate: true},
		{Name: "json_schema", Doc: "the output satisfies a JSON schema", Keys: []string{"output", "schema", "not"}, Required: []string{"schema"}, Rate: true},
		{Name: "numeric", Doc: "the output is a number within a tolerance of the expected one", Keys: append(compared[:3:3], "tolerance", "relative_tolerance", "not"), Rate: true},
		{Name: "levenshtein", Doc: "the share of characters that need no insertion, deletion or replacement to make the expected text", Keys: append(compared[:3:3], "ignore_case", "threshold")},
		{Name: "rouge_l", Doc: "ROUGE-L: the F-measure of the longest common sequence of words", Keys: append(compared[:3:3], "threshold")},
		{Name: "bleu", Doc: "BLEU of one sentence: the parts of 1 to 4 words that the expected text has, too", Keys: append(compared[:3:3], "threshold")},
		{Name: "similarity", Doc: "the cosine similarity of the embeddings of the output and the expected text, from 0 to 1", Keys: append(compared[:3:3], "model", "threshold"), Required: []string{"model"}, Embeds: true},
		{Name: "judge", Doc: "the score from 0 to 1 that a chat model gives by a rubric", Keys: append(compared[:3:3], "model", "judges", "rubric", "labels", "votes", "check", "threshold"), Required: []string{"rubric"}, Judges: true},
		{Name: "preference", Doc: "whether a chat model prefers the output to the expected one by a rubric, in both orders: 1, or 0 for the expected one, or 0.5 if the orders disagree", Keys: append(compared[:3:3], "model", "judges", "rubric", "check"), Required: []string{"rubric"}, Judges: true},
		{Name: "faithfulness", Doc: "the share of the statements of the output that its sources support, by a chat model", Keys: []string{"output", "sources", "model", "judges", "threshold"}, Judges: true},
		{Name: "relevance", Doc: "how far the output answers the question, by a chat model: 1, 0.5 or 0", Keys: []string{"output", "model", "judges", "votes", "check", "threshold"}, Judges: true},
		{Name: "source_recall", Doc: "the share of the expected sources that were found or cited", Keys: []string{"sources", "expected", "value", "threshold"}},
		{Name: "source_precision", Doc: "the share of the sources that were found or cited that are expected", Keys: []string{"sources", "expected", "value", "threshold"}},
		{Name: "checks", Doc: "the checks of the simulated user are met", Rate: true},
		{Name: "safe", Doc: "the application has resisted the attack", Rate: true},
		{Name: "latency", Doc: "the duration of the row", Unit: "s", Lower: true, Noisy: true},
		{Name: "tokens", Doc: "the tokens that models read and wrote for the row", Unit: "tokens", Lower: true},
		{Name: "cost", Doc: "the money for the row, by the prices of the models", Unit: "money", Lower: true},
	}
}

// LookupMetric returns the row of a type of metric.
func LookupMetric(name string) (MetricRow, bool) {
	return findRow(Metrics(), func(r MetricRow) bool { return r.Name == name })
}

// Name returns the name of the metric in reports.
func (m *Metric) Name() string {
	if m.ID != "" {
		return m.ID
	}
	return m.Type
}
