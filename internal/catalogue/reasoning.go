package catalogue

// Reasoning is whether a model reasons before it answers, and what sets it.
type Reasoning struct {
	Mode           string   `json:"mode,omitempty"`            // none, optional or always; empty if unknown
	Control        Control  `json:"control,omitempty"`         // the parameter that sets it; empty if unknown
	SetBy          string   `json:"set_by,omitempty"`          // the parameters in full
	Efforts        []string `json:"efforts,omitempty"`         // values of the effort
	Levels         []string `json:"levels,omitempty"`          // values of Gemini's thinkingLevel
	ThinkingTypes  []string `json:"thinking_types,omitempty"`  // values of thinking.type
	DisabledUpTo   string   `json:"disabled_up_to,omitempty"`  // the highest effort with which thinking can be disabled; empty for any
	Default        string   `json:"default,omitempty"`         // what holds without a setting: off, on, adaptive, dynamic, or an effort
	DefaultOn      bool     `json:"default_on,omitempty"`      // it reasons without a setting; false also if that is unknown
	DefaultEffort  string   `json:"default_effort,omitempty"`  // the effort without a setting, if it reasons
	DisplayDefault string   `json:"display_default,omitempty"` // thinking.display without a setting
	BoundToPrefix  bool     `json:"thinking_bound_to_prefix,omitempty"`
	Context        []string `json:"context,omitempty"` // values of reasoning.context
	Modes          []string `json:"modes,omitempty"`   // values of reasoning.mode
	Budget         *Budget  `json:"budget,omitempty"`  // nil if it has none
	Answer         string   `json:"answer,omitempty"`  // the field or form in which an answer has its reasoning, where it is not the protocol's own
	ResponsesOnly  bool     `json:"responses_only,omitempty"`
	ChatTools      string   `json:"tools_in_chat_completions,omitempty"` // when Chat Completions accepts function tools: ToolsNever, ToolsIfOff, ToolsIfSetOff; empty for always
	Note           string   `json:"note,omitempty"`
}

// The modes of reasoning.
const (
	ReasonsNever    = "none"
	ReasonsOptional = "optional"
	ReasonsAlways   = "always"
)

// When Chat Completions accepts function tools of a model that reasons.
const (
	ToolsNever    = "never"             // the model cannot stop reasoning
	ToolsIfOff    = "reasoning_off"     // while reasoning_effort is omitted or none
	ToolsIfSetOff = "reasoning_set_off" // only with an explicit reasoning_effort none
)

// Budget are the limits of a number of reasoning tokens. Min 0 turns reasoning off, Max 0
// is no limit but the length of the answer.
type Budget struct {
	Min int `json:"min"`
	Max int `json:"max,omitempty"`
}

// Control is the parameter of a protocol that sets reasoning.
type Control string

// The controls.
const (
	ReasoningEffort  Control = "reasoning_effort"  // reasoning.effort in Responses, reasoning_effort in Chat Completions
	ThinkingEffort   Control = "thinking"          // thinking.type, and output_config.effort for the effort
	ThinkingSwitch   Control = "thinking_switch"   // thinking.type enabled or disabled, and reasoning_effort where Efforts are known
	EnableThinking   Control = "enable_thinking"   // enable_thinking and thinking_budget
	ThinkingLevel    Control = "thinking_level"    // generationConfig.thinkingConfig.thinkingLevel
	ThinkingBudget   Control = "thinking_budget"   // generationConfig.thinkingConfig.thinkingBudget
	ConverseThinking Control = "converse_thinking" // additionalModelRequestFields.thinking and output_config of Converse
	ReasoningConfig  Control = "reasoning_config"  // additionalModelRequestFields.reasoningConfig of Converse
)

// controls lists all controls.
func controls() []Control {
	return []Control{ReasoningEffort, ThinkingEffort, ThinkingSwitch, EnableThinking, ThinkingLevel, ThinkingBudget, ConverseThinking, ReasoningConfig}
}

// Reasons reports whether the model can reason.
func (r Reasoning) Reasons() bool { return r.Mode == ReasonsOptional || r.Mode == ReasonsAlways }

// RefusesToolsInChat reports whether Chat Completions refuses function tools of the model in a
// request with an effort, which is empty where the request has none.
func (r Reasoning) RefusesToolsInChat(effort string) bool {
	switch r.ChatTools {
	case ToolsNever:
		return true
	case ToolsIfSetOff:
		return effort != "none"
	case ToolsIfOff:
		return effort != "" && effort != "none"
	}
	return false
}
